//! Faults that happen by themselves: crashes and cuts at random times.

use crate::network::{Cut, NodeId};
use dyno_random::Random;

/// How often what goes wrong. Everything ends at `until_ns`: cuts heal and nodes start again, so
/// that a test can then ask whether the system comes to rest.
#[derive(Debug, Clone, Copy)]
pub struct Storm {
    /// When it is over, in true time.
    pub until_ns: u64,
    /// A random node that is up crashes about this often; with 0 none does.
    pub crash_every_ns: u64,
    /// The longest a node stays down.
    pub down_ns: u64,
    /// A random direction between two nodes, or all of a random node, is cut about this often; 0:
    /// never.
    pub cut_every_ns: u64,
    /// The longest a cut lasts.
    pub cut_ns: u64,
    /// Nodes from this number on are spared crashes: clients, say, whose fate the test decides.
    pub spare_from: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum StormEvent {
    Crash,
    Start(NodeId),
    Cut,
    Heal(NodeId, Option<NodeId>),
}

impl StormEvent {
    /// Whether it makes something go wrong, rather than end.
    pub fn begins_a_fault(self) -> bool {
        matches!(self, Self::Crash | Self::Cut)
    }
}

/// What a storm's event does to the world.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    pub next: [Option<(u64, StormEvent)>; 2],
    pub crash: Option<NodeId>,
    pub start: Option<NodeId>,
    /// Links to cut, or to heal.
    pub cuts: Vec<(NodeId, NodeId, Option<Cut>)>,
}

impl Storm {
    pub(crate) fn first(&self, now_ns: u64, random: &mut Random) -> Vec<(u64, StormEvent)> {
        let crash = self.later(self.crash_every_ns, now_ns, StormEvent::Crash, random);
        let cut = self.later(self.cut_every_ns, now_ns, StormEvent::Cut, random);
        [crash, cut].into_iter().flatten().collect()
    }

    pub(crate) fn fault(
        &self,
        event: StormEvent,
        now_ns: u64,
        nodes: usize,
        up: &[NodeId],
        random: &mut Random,
    ) -> Fault {
        match event {
            StormEvent::Crash => self.crash(now_ns, up, random),
            StormEvent::Start(node) => Fault {
                start: Some(node),
                ..Fault::default()
            },
            StormEvent::Cut => self.cut(now_ns, nodes, random),
            StormEvent::Heal(from, to) => Fault {
                cuts: links(from, to, nodes, None),
                ..Fault::default()
            },
        }
    }

    fn crash(&self, now_ns: u64, up: &[NodeId], random: &mut Random) -> Fault {
        let again = self.later(self.crash_every_ns, now_ns, StormEvent::Crash, random);
        let open: Vec<NodeId> = up
            .iter()
            .copied()
            .filter(|n| n.0 < self.spare_from)
            .collect();
        // When every node is down or spared, the storm goes on and tries again later.
        let Some(&node) = open.get(random.below(open.len())) else {
            return Fault {
                next: [again, None],
                ..Fault::default()
            };
        };
        let up_ns = self.end_of(now_ns, self.down_ns, random);
        Fault {
            next: [again, Some((up_ns, StormEvent::Start(node)))],
            crash: Some(node),
            ..Fault::default()
        }
    }

    fn cut(&self, now_ns: u64, nodes: usize, random: &mut Random) -> Fault {
        let again = self.later(self.cut_every_ns, now_ns, StormEvent::Cut, random);
        let (from, to) = (NodeId(random.below(nodes)), NodeId(random.below(nodes)));
        // A node drawn twice is cut from all others, both ways.
        let to = (from != to).then_some(to);
        let cut = if random.one_in(2) {
            Cut::Lose
        } else {
            Cut::Hold
        };
        let heal_ns = self.end_of(now_ns, self.cut_ns, random);
        Fault {
            next: [again, Some((heal_ns, StormEvent::Heal(from, to)))],
            cuts: links(from, to, nodes, Some(cut)),
            ..Fault::default()
        }
    }

    fn later(
        &self,
        every_ns: u64,
        now_ns: u64,
        event: StormEvent,
        random: &mut Random,
    ) -> Option<(u64, StormEvent)> {
        let at_ns = now_ns.saturating_add(random.between(every_ns / 2, every_ns / 2 + every_ns));
        (every_ns > 0 && at_ns < self.until_ns).then_some((at_ns.max(now_ns + 1), event))
    }

    fn end_of(&self, now_ns: u64, most_ns: u64, random: &mut Random) -> u64 {
        let at_ns = now_ns.saturating_add(random.between(1, most_ns.max(1)));
        // What began inside the storm ends with it at the latest, and never before it began.
        at_ns.min(self.until_ns.max(now_ns + 1))
    }
}

fn links(
    from: NodeId,
    to: Option<NodeId>,
    nodes: usize,
    cut: Option<Cut>,
) -> Vec<(NodeId, NodeId, Option<Cut>)> {
    match to {
        Some(to) => vec![(from, to, cut)],
        None => (0..nodes)
            .map(NodeId)
            .filter(|&other| other != from)
            .flat_map(|other| [(from, other, cut), (other, from, cut)])
            .collect(),
    }
}
