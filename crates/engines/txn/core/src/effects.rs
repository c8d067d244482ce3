//! What a partition wants done after an input.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher};

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
    commits: HashMap<Stamp, Position, StampHash>,
    in_order: VecDeque<(Position, Stamp)>,
}

impl Held {
    pub fn new(seed: u64) -> Self {
        Self {
            commits: HashMap::with_hasher(StampHash(seed)),
            ..Self::default()
        }
    }

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

    /// The log is durable up to here: what waited no longer does, and comes out of [`Held::next`].
    pub fn release(&mut self, durable: Position) {
        self.durable = self.durable.max(durable);
        while let Some(&(position, stamp)) = self.in_order.front() {
            if position > self.durable {
                break;
            }
            self.in_order.pop_front();
            self.commits.remove(&stamp);
        }
    }

    /// An answer that waited, and need not wait any more.
    pub fn next(&mut self) -> Option<(Address, Message)> {
        let (position, ..) = self.messages.front()?;
        if *position > self.durable {
            return None;
        }
        let (_, to, message) = self.messages.pop_front()?;
        Some((to, message))
    }
}

/// Hashes stamps for `commits`. Who commits does not choose how they hash: a seed is mixed in.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct StampHash(u64);

impl BuildHasher for StampHash {
    type Hasher = StampHasher;

    fn build_hasher(&self) -> StampHasher {
        StampHasher(self.0)
    }
}

pub(crate) struct StampHasher(u64);

impl Hasher for StampHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, stamp: u64) {
        let product = u128::from(self.0 ^ stamp) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}
