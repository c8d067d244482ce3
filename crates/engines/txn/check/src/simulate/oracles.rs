//! The oracles: one within the server, or two nodes that take over from each other by themselves.

use std::collections::HashMap;
use std::sync::Arc;

use dyno_sim::NodeId;
use dyno_txn_api::{Code, Error, Timestamp};
use dyno_txn_core::Timestamps;
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::oracle::{Candidate, Clock};
use parking_lot::Mutex;

/// How far the bound of the oracle within the server is ahead of its clock.
const WINDOW_NS: u64 = 300_000_000;

/// All timestamps that any oracle issued. Each must be above all earlier ones.
#[derive(Debug, Default)]
struct Issued {
    last: Timestamp,
    fell: Option<String>,
}

impl Issued {
    fn note(&mut self, first: Timestamp, count: u32) {
        if first <= self.last {
            let sentence = format!("timestamp {first} was given after {}", self.last);
            self.fell.get_or_insert(sentence);
        }
        self.last = self.last.max(first + u64::from(count.max(1)) - 1);
    }
}

/// Oracles on nodes of their own.
pub(super) struct Oracles {
    pub nodes: Vec<NodeId>,
    machines: Vec<Option<Candidate>>,
    partitions: u32,
    /// How many timestamps a request asked for, by its sender and ticket. The answer names only the
    /// first of them, and a repeated request is answered once more.
    asked: HashMap<(Address, u64), u32>,
    issued: Issued,
    takeovers: u64,
}

impl Oracles {
    /// Oracles that do not run before [`Oracles::start`].
    pub fn new(nodes: Vec<NodeId>, partitions: u32) -> Self {
        Self {
            machines: nodes.iter().map(|_| None).collect(),
            nodes,
            partitions,
            asked: HashMap::new(),
            issued: Issued::default(),
            takeovers: 0,
        }
    }

    /// Starts an oracle. It remembers nothing of an earlier life, and has a random salt.
    pub fn start(&mut self, number: usize, salt: u32) {
        self.machines[number] = Some(Candidate::new(0..self.partitions, salt));
    }

    pub fn number(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|&other| other == node)
    }

    pub fn crash(&mut self, node: NodeId) {
        if let Some(number) = self.number(node) {
            self.machines[number] = None;
        }
    }

    /// The node of an oracle that believes that it serves. Two may believe that for a while.
    pub fn serving(&self) -> Option<NodeId> {
        let serves = |machine: &Option<Candidate>| machine.as_ref().is_some_and(Candidate::serves);
        self.machines
            .iter()
            .position(serves)
            .map(|number| self.nodes[number])
    }

    /// How timestamps went back, if they did.
    pub fn fell(&self) -> Option<String> {
        self.issued.fell.clone()
    }

    /// How often an oracle began to serve.
    pub fn takeovers(&self) -> u64 {
        self.takeovers
    }

    pub fn tick(&mut self, number: usize, (now, wall): (u64, u64)) -> Vec<(Address, Message)> {
        let mut sends = Vec::new();
        if let Some(oracle) = &mut self.machines[number] {
            let before = oracle.serves();
            oracle.tick(now, wall, &mut sends);
            self.takeovers += u64::from(!before && oracle.serves());
        }
        sends
    }

    pub fn handle(
        &mut self,
        number: usize,
        (now, wall): (u64, u64),
        from: Address,
        message: Message,
    ) -> Vec<(Address, Message)> {
        if let Message::TakeTimestamps { ticket, count } = &message {
            self.asked.insert((from, *ticket), *count);
        }
        let mut sends = Vec::new();
        if let Some(oracle) = &mut self.machines[number] {
            oracle.handle(now, wall, from, message, &mut sends);
        }
        for (to, message) in &sends {
            if let Message::Timestamps {
                ticket,
                result: Ok(first),
            } = message
            {
                let count = self.asked.get(&(*to, *ticket)).copied().unwrap_or(1);
                self.issued.note(*first, count);
            }
        }
        sends
    }
}

/// The oracle within the server, shared with its partitions.
#[derive(Debug, Clone)]
pub(super) struct Local(Arc<Mutex<Within>>);

#[derive(Debug)]
struct Within {
    clock: Clock,
    /// The node's clock as it was shown last, in nanoseconds.
    wall: u64,
    issued: Issued,
}

impl Within {
    fn issue(&mut self, wall: u64) -> Option<Timestamp> {
        let timestamp = self.clock.issue(wall)?;
        self.issued.note(timestamp, 1);
        Some(timestamp)
    }
}

impl Local {
    /// An oracle that issues nothing until it knows which timestamps were issued before.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Within {
            clock: Clock::new(0, 0),
            wall: 0,
            issued: Issued::default(),
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Within) -> T) -> T {
        act(&mut self.0.lock())
    }

    /// Issues timestamps above `last` from now on, once a bound is stored.
    pub fn begin(&self, last: Timestamp) {
        self.with(|within| within.clock = Clock::new(last, last));
    }

    pub fn extend(&self, bound: Timestamp) {
        self.with(|within| within.clock.extend(bound));
    }

    /// Tells the oracle what the node's clock shows now.
    pub fn set_wall(&self, wall: u64) {
        self.with(|within| within.wall = wall);
    }

    /// How timestamps went back, if they did.
    pub fn fell(&self) -> Option<String> {
        self.with(|within| within.issued.fell.clone())
    }

    /// The message that lets partition 0 store a bound well beyond the last timestamp.
    pub fn keep(&self) -> Message {
        let bound = self.with(|within| within.clock.last().max(within.wall) + WINDOW_NS);
        Message::KeepBound { epoch: 1, bound }
    }

    /// Answers a request for timestamps. They are consecutive, because the answer names only the
    /// first.
    pub fn answer(&self, ticket: u64, count: u32) -> Message {
        let timestamps = self.with(|within| {
            let first = within.issue(within.wall)?;
            (1..count).try_fold(first, |last, _| {
                // The clock reads 0 here, so it only counts on. If the bound is reached in between,
                // none of the timestamps is used.
                within.issue(0).filter(|&next| next == last + 1)
            })?;
            Some(first)
        });
        let none = || Error::new(Code::Unavailable, "the bound is used up");
        let result = timestamps.ok_or_else(none);
        Message::Timestamps { ticket, result }
    }
}

impl Timestamps for Local {
    fn next(&mut self) -> Option<Timestamp> {
        self.with(|within| within.issue(within.wall))
    }

    fn plausible(&mut self, timestamp: Timestamp) -> bool {
        self.with(|within| timestamp <= within.clock.last())
    }
}

/// For partitions whose timestamps come with the transactions.
pub(super) struct Elsewhere;

impl Timestamps for Elsewhere {
    fn next(&mut self) -> Option<Timestamp> {
        None
    }

    fn plausible(&mut self, _: Timestamp) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_within_an_earlier_batch_falls() {
        let mut issued = Issued::default();
        issued.note(100, 3);
        assert_eq!(issued.fell, None);
        issued.note(102, 1);
        let fell = issued.fell.expect("102 was given twice");
        assert_eq!(fell, "timestamp 102 was given after 102");
    }

    /// An oracle, its only keeper, and a client that asks for three timestamps at a time.
    #[test]
    fn all_timestamps_of_an_answer_count_as_given() {
        let mut oracles = Oracles::new(Vec::new(), 1);
        oracles.machines.push(None);
        oracles.start(0, 0);
        let mut kept: (u64, Timestamp) = (0, 0);
        let mut given: Option<Timestamp> = None;
        for step in 1..200 {
            let clocks = (step * 50_000_000, step * 50_000_000);
            let (ticket, count) = (step, 3);
            let take = Message::TakeTimestamps { ticket, count };
            let mut sends = oracles.tick(0, clocks);
            sends.extend(oracles.handle(0, clocks, Address::Client(1), take));
            while let Some((to, message)) = sends.pop() {
                match message {
                    Message::KeepBound { epoch, bound } => {
                        if epoch >= kept.0 {
                            kept = (epoch, bound.max(kept.1));
                        }
                        let (epoch, bound) = kept;
                        let answer = Message::BoundKept { epoch, bound };
                        sends.extend(oracles.handle(0, clocks, to, answer));
                    }
                    Message::Timestamps {
                        result: Ok(first), ..
                    } => given = given.max(Some(first)),
                    _ => {}
                }
            }
        }
        let first = given.expect("it serves");
        assert_eq!(oracles.issued.last, first + 2);
        assert_eq!(oracles.fell(), None);
    }
}
