//! What a partition wants done after an input.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher};

use dyno_txn_api::Stamp;

use crate::message::{Address, Message, PartitionId};

/// Counts a partition's log records: the first one is 1.
pub type Position = u64;

/// What a partition wants done. The driver empties it after each call, records before messages.
#[derive(Debug, Default)]
pub struct Effects {
    /// To be sent now. Those that wait for the log are kept in the partition.
    pub sends: Vec<(Address, Message)>,
    /// To be sent now, to clients, in the bytes of messages: what [`Partition::handle_bytes`] answers at once.
    ///
    /// [`Partition::handle_bytes`]: crate::Partition::handle_bytes
    pub answers: Answers,
    /// To be appended to the log, in order.
    pub records: Records,
}

/// Answers to clients as messages in bytes, one after the other in one buffer.
#[derive(Debug, Default)]
pub struct Answers {
    bytes: Vec<u8>,
    /// To which client, from which partition, and where it ends.
    list: Vec<(u64, PartitionId, usize)>,
}

impl Answers {
    /// Each answer: the client, the partition it is from, and a message's bytes.
    pub fn iter(&self) -> impl Iterator<Item = (u64, PartitionId, &[u8])> {
        let mut start = 0;
        self.list.iter().map(move |&(client, from, end)| {
            let bytes = &self.bytes[start..end];
            start = end;
            (client, from, bytes)
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets them, keeping memory, though no more than `most_bytes`.
    pub fn clear(&mut self, most_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(most_bytes);
        self.list.clear();
    }

    /// Where one that is being made goes; it counts with [`Answers::end`].
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The one that is being made is whole.
    pub(crate) fn end(&mut self, client: u64, from: PartitionId) {
        self.list.push((client, from, self.bytes.len()));
    }

    /// What was made of one that is not whole.
    pub(crate) fn made(&self) -> &[u8] {
        &self.bytes[self.list.last().map_or(0, |&(.., end)| end)..]
    }

    /// Forgets what was made of it.
    pub(crate) fn cancel(&mut self) {
        self.bytes
            .truncate(self.list.last().map_or(0, |&(.., end)| end));
    }
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

/// One thing that waits for the log.
#[derive(Debug)]
pub(crate) enum Answer {
    Message(Address, Message),
    /// To a client, in bytes.
    Bytes(u64, Vec<u8>),
}

/// Buffers of answers that are kept for the next ones, and the longest of those.
const SPARE_MOST: usize = 1024;
const SPARE_BYTES: usize = 4 << 10;

/// What waits for the log.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub appended: Position,
    pub durable: Position,
    messages: VecDeque<(Position, Answer)>,
    /// Buffers that were used before.
    spare: Vec<Vec<u8>>,
    /// Commits whose record is not durable yet: who reads their rows must not tell before it is.
    commits: HashMap<Stamp, Position, StampHash>,
    in_order: VecDeque<(Position, Stamp)>,
    /// Those of them that no later one is older than: its first one is the oldest of all.
    oldest: VecDeque<(Position, Stamp)>,
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
        while self
            .oldest
            .pop_back_if(|(_, other)| *other >= stamp)
            .is_some()
        {}
        self.oldest.push_back((self.appended, stamp));
    }

    /// The oldest timestamp of a commit whose record is not durable yet; of all versions with an older one people may
    /// be told. The largest timestamp when there is none.
    pub fn oldest_commit(&self) -> Stamp {
        self.oldest.front().map_or(Stamp::MAX, |(_, stamp)| *stamp)
    }

    /// Up to where the log must be durable before somebody may be told of this version.
    pub fn position_of(&self, stamp: Stamp) -> Position {
        match self.commits.is_empty() {
            true => 0,
            false => self.commits.get(&stamp).copied().unwrap_or(0),
        }
    }

    // Positions ascend but for answers that saw an older record; those wait a little longer.

    pub fn hold(&mut self, position: Position, to: Address, message: Message) {
        self.messages
            .push_back((position, Answer::Message(to, message)));
    }

    /// The same for an answer in bytes, of which it takes a copy.
    pub fn hold_bytes(&mut self, position: Position, client: u64, bytes: &[u8]) {
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.extend_from_slice(bytes);
        self.messages
            .push_back((position, Answer::Bytes(client, kept)));
    }

    /// A buffer of [`Answer::Bytes`] that is not needed any more.
    pub fn give_back(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE_BYTES && self.spare.len() < SPARE_MOST {
            bytes.clear();
            self.spare.push(bytes);
        }
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
        let durable = self.durable;
        while self.oldest.pop_front_if(|(at, _)| *at <= durable).is_some() {}
    }

    /// An answer that waited, and need not wait any more.
    pub fn next(&mut self) -> Option<Answer> {
        let durable = self.durable;
        let ready = |(position, _): &mut (Position, Answer)| *position <= durable;
        self.messages.pop_front_if(ready).map(|(_, answer)| answer)
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
