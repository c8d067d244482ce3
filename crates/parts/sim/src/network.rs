//! The network: how long messages take, and which of them arrive.

use std::collections::BTreeMap;

use dyno_random::Random;

/// A node of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) usize);

impl NodeId {
    /// Its number; nodes are numbered from 0 in the order of [`crate::World::add_node`].
    pub fn index(self) -> usize {
        self.0
    }
}

/// How long a message takes: mostly between `low_ns` and `high_ns`, and once in `slow_one_in` times
/// up to `slow_ns` more. Whole numbers only, so that every machine draws the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The least that any message takes.
    pub low_ns: u64,
    /// The most that a usual message takes.
    pub high_ns: u64,
    /// One message in so many is slow; with 0 none is.
    pub slow_one_in: usize,
    /// What a slow message takes beyond a usual one, at most.
    pub slow_ns: u64,
}

impl Delay {
    /// Every message takes the same time.
    pub fn fixed(ns: u64) -> Self {
        Self::uniform(ns, ns)
    }

    /// Draws each message's time between the two, every value as likely as any other.
    pub fn uniform(low_ns: u64, high_ns: u64) -> Self {
        Self {
            low_ns,
            high_ns,
            slow_one_in: 0,
            slow_ns: 0,
        }
    }

    /// Adds a tail: once in `slow_one_in` times a message takes up to `slow_ns` more.
    #[must_use]
    pub fn with_tail(self, slow_one_in: usize, slow_ns: u64) -> Self {
        Self {
            slow_one_in,
            slow_ns,
            ..self
        }
    }

    /// Draws the time of one message.
    pub fn draw_ns(&self, random: &mut Random) -> u64 {
        let usual = random.between(self.low_ns, self.high_ns);
        if self.slow_one_in > 0 && random.one_in(self.slow_one_in) {
            usual.saturating_add(random.between(0, self.slow_ns))
        } else {
            usual
        }
    }
}

/// One direction between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// How long messages take on it.
    pub delay: Delay,
    /// Messages that are lost, per million.
    pub loss_per_million: u32,
    /// Messages that arrive twice, per million; the second has a delay of its own.
    pub duplicate_per_million: u32,
    /// Whether messages arrive in the order in which they were sent, as on one TCP connection; if
    /// not, a faster one overtakes.
    pub ordered: bool,
}

impl Default for Link {
    /// 50 to 150 microseconds, nothing lost, any order.
    fn default() -> Self {
        Self {
            delay: Delay::uniform(50_000, 150_000),
            loss_per_million: 0,
            duplicate_per_million: 0,
            ordered: false,
        }
    }
}

/// What a cut link does with messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// They are lost, those on the way included.
    Lose,
    /// They wait for the link to heal, as TCP would do it.
    Hold,
}

#[derive(Debug)]
pub(crate) struct Network {
    usual: Link,
    links: BTreeMap<(NodeId, NodeId), Link>,
    cuts: BTreeMap<(NodeId, NodeId), Cut>,
    /// When the last message of an ordered link arrives.
    last_ns: BTreeMap<(NodeId, NodeId), u64>,
    random: Random,
}

impl Network {
    pub fn new(usual: Link, random: Random) -> Self {
        Self {
            usual,
            links: BTreeMap::new(),
            cuts: BTreeMap::new(),
            last_ns: BTreeMap::new(),
            random,
        }
    }

    pub fn set_link(&mut self, from: NodeId, to: NodeId, link: Link) {
        self.links.insert((from, to), link);
    }

    pub fn set_usual(&mut self, link: Link) {
        self.usual = link;
        self.links.clear();
    }

    pub fn cut(&mut self, from: NodeId, to: NodeId, cut: Cut) {
        self.cuts.insert((from, to), cut);
    }

    pub fn heal(&mut self, from: NodeId, to: NodeId) {
        self.cuts.remove(&(from, to));
    }

    pub fn cut_of(&self, from: NodeId, to: NodeId) -> Option<Cut> {
        self.cuts.get(&(from, to)).copied()
    }

    /// When a message sent now arrives: never, once, or twice.
    pub fn arrivals(&mut self, now_ns: u64, from: NodeId, to: NodeId) -> [Option<u64>; 2] {
        let link = *self.links.get(&(from, to)).unwrap_or(&self.usual);
        // A message of a node to itself is neither lost nor doubled, because no network carries it.
        if from != to && self.random.chance(link.loss_per_million) {
            return [None, None];
        }
        let first = Some(self.arrival(now_ns, from, to, &link));
        let twice = from != to && self.random.chance(link.duplicate_per_million);
        [first, twice.then(|| self.arrival(now_ns, from, to, &link))]
    }

    fn arrival(&mut self, now_ns: u64, from: NodeId, to: NodeId, link: &Link) -> u64 {
        let drawn = now_ns.saturating_add(link.delay.draw_ns(&mut self.random));
        if !link.ordered {
            return drawn;
        }
        let last = self.last_ns.entry((from, to)).or_insert(0);
        // A message that would overtake waits for the one before it, as bytes of one connection do.
        // The time is kept per direction.
        *last = drawn.max(*last);
        *last
    }
}
