//! Oracles that take over from each other never go backwards, whatever the wall clock does.

use std::collections::BTreeMap;

use dyno_sim::Random;
use dyno_txn_api::Timestamp;
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::oracle::Oracle;

/// Keepers as a partition is one: an older epoch changes nothing, bounds only rise.
#[derive(Default)]
struct Keepers(BTreeMap<u32, (u64, Timestamp)>);

impl Keepers {
    fn keep(&mut self, id: u32, epoch: u64, bound: Timestamp) -> Message {
        let kept = self.0.entry(id).or_default();
        if epoch >= kept.0 {
            *kept = (epoch, bound.max(kept.1));
        }
        Message::BoundKept {
            epoch: kept.0,
            bound: kept.1,
        }
    }
}

struct World {
    random: Random,
    now: u64,
    keepers: Keepers,
    oracles: Vec<Oracle>,
    flying: Vec<(usize, Address, Message)>,
    /// How many timestamps each request asked for, by its ticket.
    asked: Vec<u32>,
    /// The last timestamp of each answer, which names only the first.
    given: Vec<Timestamp>,
}

impl World {
    fn step(&mut self) {
        self.now += self.random.below(40_000_000) as u64;
        // The time of the day steps back and forth by seconds.
        let wall = 5_000_000_000 + self.now + self.random.below(3) as u64 * 2_000_000_000;
        let which = self.random.below(self.oracles.len());
        let mut sends = Vec::new();
        match self.flying.len() {
            0 => self.oracles[which].tick(self.now, wall, &mut sends),
            _ if self.random.one_in(5) => self.oracles[which].tick(self.now, wall, &mut sends),
            count => {
                let at = self.random.below(count);
                let (to, from, message) = self.flying.swap_remove(at);
                if !self.random.one_in(20) {
                    let oracle = &mut self.oracles[to];
                    oracle.handle(self.now, wall, from, message, &mut sends);
                    return self.sent(to, sends);
                }
            }
        }
        self.sent(which, sends);
        if self.random.one_in(4) {
            let to = self.random.below(self.oracles.len());
            let ticket = self.asked.len() as u64;
            let count = 1 + self.random.below(3) as u32;
            self.asked.push(count);
            let take = Message::TakeTimestamps { ticket, count };
            let mut sends = Vec::new();
            self.oracles[to].handle(self.now, wall, Address::Client(1), take, &mut sends);
            self.sent(to, sends);
        }
    }

    fn sent(&mut self, oracle: usize, sends: Vec<(Address, Message)>) {
        for (to, message) in sends {
            match (to, message) {
                (Address::Partition(_), _) if self.random.one_in(10) => {}
                (Address::Partition(id), Message::KeepBound { epoch, bound }) => {
                    let kept = self.keepers.keep(id, epoch, bound);
                    self.flying.push((oracle, Address::Partition(id), kept));
                }
                (
                    Address::Client(_),
                    Message::Timestamps {
                        ticket,
                        result: Ok(first),
                    },
                ) => {
                    let last = self.given.last().copied().unwrap_or(0);
                    assert!(first > last, "{first} after {last}");
                    let count = self.asked[ticket as usize];
                    self.given.push(first + u64::from(count) - 1);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn timestamps_rise_across_takeovers() {
    let mut given = 0;
    for seed in 0..30 {
        let mut world = World {
            random: Random::new(seed),
            now: 1,
            keepers: Keepers::default(),
            oracles: vec![Oracle::new(1, 0..3)],
            flying: Vec::new(),
            asked: Vec::new(),
            given: Vec::new(),
        };
        for step in 0..4_000 {
            if step % 1_000 == 999 {
                let epoch = world.oracles.len() as u64 + 1;
                world.oracles.push(Oracle::new(epoch, 0..3));
            }
            world.step();
        }
        assert!(world.oracles[0].is_deposed());
        given += world.given.len();
    }
    println!("{given} timestamps");
    assert!(
        given > 1_000,
        "too few timestamps to prove anything: {given}"
    );
}
