//! What a partition wants done after an input.

use std::collections::{HashMap, VecDeque};

use dyno_txn_api::Stamp;

use crate::message::{Address, Message};

/// Counts a partition's log records: the first one is 1.
pub type Position = u64;

/// What a partition wants done. The driver empties it after each call, records before messages.
#[derive(Debug, Default)]
pub struct Effects {
    /// To be sent now. Those that wait for the log are kept in the partition.
    pub sends: Vec<(Address, Message)>,
    /// To be appended to the log, in order.
    pub records: Records,
}

/// Log records, one after the other in one buffer.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Records {
    /// Each record's bytes, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let record = &self.bytes[start..end];
            start = end;
            record
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets them, keeping the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }
}

/// What waits for the log.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub appended: Position,
    pub durable: Position,
    messages: VecDeque<(Position, Address, Message)>,
    /// Commits whose record is not durable yet: who reads their rows must not tell before it is.
    commits: HashMap<Stamp, Position>,
    in_order: VecDeque<(Position, Stamp)>,
}

impl Held {
    /// A commit's record was appended.
    pub fn committed(&mut self, stamp: Stamp) {
        self.commits.insert(stamp, self.appended);
        self.in_order.push_back((self.appended, stamp));
    }

    /// Up to where the log must be durable before somebody may be told of this version.
    pub fn position_of(&self, stamp: Stamp) -> Position {
        match self.commits.is_empty() {
            true => 0,
            false => self.commits.get(&stamp).copied().unwrap_or(0),
        }
    }

    pub fn hold(&mut self, position: Position, to: Address, message: Message) {
        // Positions ascend but for answers that saw an older record; those wait a little longer.
        self.messages.push_back((position, to, message));
    }

    /// The log is durable up to here: what waited no longer does.
    pub fn release(&mut self, durable: Position) -> Vec<(Address, Message)> {
        self.durable = self.durable.max(durable);
        while let Some(&(position, stamp)) = self.in_order.front() {
            if position > self.durable {
                break;
            }
            self.in_order.pop_front();
            self.commits.remove(&stamp);
        }
        let mut released = Vec::new();
        while let Some((position, ..)) = self.messages.front() {
            if *position > self.durable {
                break;
            }
            if let Some((_, to, message)) = self.messages.pop_front() {
                released.push((to, message));
            }
        }
        released
    }
}
