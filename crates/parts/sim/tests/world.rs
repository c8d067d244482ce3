//! One seed decides everything, and each fault does what it says.

use std::collections::BTreeMap;

use dyno_sim::{ClockFaults, Cut, Delay, Event, Link, NodeId, Settings, Storm, World};

type Gossip = World<u64, u8>;

fn stormy(seed: u64) -> Settings {
    Settings {
        link: Link {
            delay: Delay::uniform(1_000, 50_000).with_tail(20, 3_000_000),
            loss_per_million: 50_000,
            duplicate_per_million: 50_000,
            ordered: false,
        },
        clock: ClockFaults {
            bound_ns: 500_000,
            drift_ppm: 200,
            change_every_ns: 3_000_000,
        },
        late_messages: true,
        rare: true,
        lines: true,
        ..Settings::calm(seed)
    }
}

/// Four nodes pass numbers on, with everything going wrong.
fn gossip(seed: u64) -> Gossip {
    let mut world = Gossip::new(stormy(seed));
    let nodes: Vec<NodeId> = (0..4).map(|n| world.add_node(&format!("n{n}"))).collect();
    world.set_storm(Storm {
        until_ns: 80_000_000,
        crash_every_ns: 9_000_000,
        down_ns: 6_000_000,
        cut_every_ns: 5_000_000,
        cut_ns: 8_000_000,
        spare_from: 4,
    });
    for &node in &nodes {
        world.set_timer(node, 1_000_000, 0);
    }
    while let Some(event) = world.next_until(100_000_000) {
        let node = match event {
            Event::Message { to, message, .. } => {
                if world.rare().fires("drop it") || message == 0 {
                    continue;
                }
                let next = nodes[(to.index() + message as usize) % 4];
                world.send(to, next, message - 1);
                continue;
            }
            Event::Timer { node, .. } | Event::Start { node } => node,
            Event::Crash { .. } => continue,
        };
        let shown = world.wall_ns(node);
        world.note(format_args!("{shown}"));
        world.send(node, nodes[shown as usize % 4], shown % 40);
        world.set_timer(node, 700_000, 0);
    }
    world
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_gives_another() {
    let mut hashes = BTreeMap::new();
    for seed in 0..40 {
        let (first, second) = (gossip(seed), gossip(seed));
        assert_eq!(first.trace().hash(), second.trace().hash(), "seed {seed}");
        assert_eq!(first.counts(), second.counts());
        assert!(first.counts().crashes > 0 && first.counts().lost > 0);
        hashes.insert(first.trace().hash(), seed);
    }
    assert_eq!(hashes.len(), 40);
}

#[test]
fn after_a_storm_all_nodes_are_up_and_all_links_heal() {
    for seed in 0..20 {
        let mut world = gossip(seed);
        world.set_links(Link::default());
        let nodes: Vec<NodeId> = world.nodes().collect();
        assert!(nodes.iter().all(|&node| world.is_up(node)), "seed {seed}");
        let before = world.counts();
        while world.next_until(200_000_000).is_some() {}
        let quiet = world.counts();
        assert_eq!(quiet.lost, before.lost);
        for &from in &nodes {
            for &to in &nodes {
                world.send(from, to, 0);
            }
        }
        while world.next_until(300_000_000).is_some() {}
        assert_eq!(world.counts().arrived, quiet.arrived + 16);
    }
}

/// Sends `count` numbers over one link and returns them as they arrive.
fn through(link: Link, count: u64) -> Vec<u64> {
    let mut world = Gossip::new(Settings::calm(5));
    let (from, to) = (world.add_node("from"), world.add_node("to"));
    world.set_link(from, to, link);
    (0..count).for_each(|number| world.send(from, to, number));
    let mut arrived = Vec::new();
    while let Some(event) = world.next_until(u64::MAX) {
        if let Event::Message { message, .. } = event {
            arrived.push(message);
        }
    }
    arrived
}

#[test]
fn links_lose_repeat_and_reorder_as_told() {
    let calm = Link::default();
    let plain = through(calm, 1_000);
    assert!(!plain.is_sorted(), "messages overtake");
    assert_eq!(plain.len(), 1_000);
    let ordered = through(
        Link {
            ordered: true,
            ..calm
        },
        1_000,
    );
    assert!(ordered.is_sorted() && ordered.len() == 1_000);
    let lossy = Link {
        loss_per_million: 500_000,
        ..calm
    };
    assert!((400..600).contains(&through(lossy, 1_000).len()));
    let twice = Link {
        duplicate_per_million: 500_000,
        ..calm
    };
    assert!((1_400..1_600).contains(&through(twice, 1_000).len()));
}

#[test]
fn a_cut_is_one_way_and_loses_or_holds() {
    for (cut, expected) in [(Cut::Lose, vec![3]), (Cut::Hold, vec![1, 2, 3])] {
        let mut world = Gossip::new(Settings::calm(1));
        let (a, b) = (world.add_node("a"), world.add_node("b"));
        let ordered = Link {
            ordered: true,
            ..Link::default()
        };
        world.set_link(a, b, ordered);
        world.send(a, b, 1);
        world.cut(a, b, cut);
        world.send(a, b, 2);
        world.send(b, a, 9);
        assert!(matches!(
            world.next_until(1_000_000),
            Some(Event::Message { message: 9, .. })
        ));
        assert_eq!(world.next_until(1_000_000), None);
        world.heal(a, b);
        world.send(a, b, 3);
        let mut arrived = Vec::new();
        while let Some(Event::Message { message, .. }) = world.next_until(2_000_000) {
            arrived.push(message);
        }
        assert_eq!(arrived, expected);
    }
}

#[test]
fn a_crash_takes_timers_and_what_arrives_meanwhile() {
    for late in [false, true] {
        let mut settings = Settings::calm(1);
        settings.late_messages = late;
        settings.link.delay = Delay::fixed(1_000);
        let mut world = Gossip::new(settings);
        let (a, b) = (world.add_node("a"), world.add_node("b"));
        world.set_timer(b, 500, 1);
        let cancelled = world.set_timer(a, 500, 2);
        world.cancel_timer(a, cancelled);
        world.send(a, b, 1);
        world.crash(b);
        world.send(b, a, 7);
        assert_eq!(world.next_until(900), None, "a crashed node has no timers");
        world.start(b);
        let arrived = world.next_until(10_000);
        assert_eq!(arrived.is_some(), late, "{arrived:?}");
        assert_eq!(world.now_ns(), if late { 1_000 } else { 10_000 });
    }
}

#[test]
fn a_new_storm_takes_the_place_of_the_earlier_one() {
    let mut world = Gossip::new(Settings::calm(3));
    for name in ["a", "b", "c"] {
        world.add_node(name);
    }
    let storm = Storm {
        until_ns: 1_000_000_000,
        crash_every_ns: 10_000_000,
        down_ns: 1_000_000,
        cut_every_ns: 0,
        cut_ns: 0,
        spare_from: 3,
    };
    for _ in 0..5 {
        world.set_storm(storm);
    }
    while world.next_until(2_000_000_000).is_some() {}
    // One storm crashes a node about a hundred times in this time.
    let crashes = world.counts().crashes;
    assert!((50..150).contains(&crashes), "{crashes}");
}
