//! The effects of an input: what a partition wants its driver to send and to log.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher};

use dyno_txn_api::Timestamp;

use crate::message::{Address, Message, PartitionId};

/// Counts a partition's log records: the first one is 1.
pub type Position = u64;

/// What the driver has to do. It empties this after each call, and appends the records before it
/// sends anything.
#[derive(Debug, Default)]
pub struct Effects {
    /// Messages to send now. The partition keeps those that wait for the log.
    pub sends: Vec<(Address, Message)>,
    /// Encoded messages to send to clients now: what [`Partition::handle_bytes`] answers at once.
    ///
    /// [`Partition::handle_bytes`]: crate::Partition::handle_bytes
    pub answers: Answers,
    /// Records to append to the log, in order.
    pub records: Records,
}

/// Encoded answers to clients, one after the other in one buffer.
#[derive(Debug, Default)]
pub struct Answers {
    bytes: Vec<u8>,
    /// Of each answer: the client, the partition it is from, and where it ends in `bytes`.
    list: Vec<(u64, PartitionId, usize)>,
}

impl Answers {
    /// The answers in order: the client, the partition it is from, and the bytes of the message.
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

    /// Empties the buffer, and keeps at most `most_bytes` of its memory.
    pub fn clear(&mut self, most_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(most_bytes);
        self.list.clear();
    }

    /// The buffer for the next answer, which counts once [`Answers::end`] is called.
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the answer that was written to [`Answers::open`].
    pub(crate) fn end(&mut self, client: u64, from: PartitionId) {
        self.list.push((client, from, self.bytes.len()));
    }

    /// The bytes of the answer that was begun and not ended.
    pub(crate) fn made(&self) -> &[u8] {
        &self.bytes[self.list.last().map_or(0, |&(.., end)| end)..]
    }

    /// Drops the answer that was begun and not ended.
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
    /// The bytes of each record, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let record = &self.bytes[start..end];
            start = end;
            record
        })
    }

    /// How many records wait to be appended.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Empties the buffer and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }
}

/// An answer that waits for the log.
#[derive(Debug)]
pub(crate) enum Answer {
    Message(Address, Message),
    /// To a client, in bytes.
    Bytes(u64, Vec<u8>),
}

/// Buffers of earlier answers that are kept for later ones.
const SPARE_MOST: usize = 1024;
/// The largest buffer that is kept.
const SPARE_BYTES: usize = 4 << 10;

/// Answers and commits that wait until the log is durable.
#[derive(Debug, Default)]
pub(crate) struct PendingAnswers {
    pub appended: Position,
    pub durable: Position,
    messages: VecDeque<(Position, Answer)>,
    /// Buffers that were used before.
    spare: Vec<Vec<u8>>,
    /// Commits whose record is not durable yet. An answer that depends on their rows waits until it
    /// is.
    commits: HashMap<Timestamp, Position, TimestampHash>,
    in_order: VecDeque<(Position, Timestamp)>,
    /// A monotonic queue over `in_order`: the commits that no later commit is older than. Its first
    /// is the oldest.
    oldest: VecDeque<(Position, Timestamp)>,
}

impl PendingAnswers {
    pub fn new(seed: u64) -> Self {
        Self {
            commits: HashMap::with_hasher(TimestampHash(seed)),
            ..Self::default()
        }
    }

    /// Notes that the record of a commit was appended.
    pub fn committed(&mut self, timestamp: Timestamp) {
        self.commits.insert(timestamp, self.appended);
        self.in_order.push_back((self.appended, timestamp));
        while self
            .oldest
            .pop_back_if(|(_, other)| *other >= timestamp)
            .is_some()
        {}
        self.oldest.push_back((self.appended, timestamp));
    }

    /// The smallest timestamp of a commit whose record is not durable yet, or the largest possible
    /// one if there is none. All versions with smaller timestamps are durable.
    pub fn oldest_commit(&self) -> Timestamp {
        self.oldest
            .front()
            .map_or(Timestamp::MAX, |(_, timestamp)| *timestamp)
    }

    /// The record up to which the log must be durable before a client is told of a version of this
    /// timestamp.
    pub fn position_of(&self, timestamp: Timestamp) -> Position {
        if self.commits.is_empty() {
            0
        } else {
            self.commits.get(&timestamp).copied().unwrap_or(0)
        }
    }

    // Answers go out in the order in which they were held. One that needs an older record than the
    // answer before it waits a little longer than it must, which saves sorting them.

    pub fn hold(&mut self, position: Position, to: Address, message: Message) {
        self.messages
            .push_back((position, Answer::Message(to, message)));
    }

    /// Holds a copy of an encoded answer.
    pub fn hold_bytes(&mut self, position: Position, client: u64, bytes: &[u8]) {
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.extend_from_slice(bytes);
        self.messages
            .push_back((position, Answer::Bytes(client, kept)));
    }

    /// Takes a buffer of [`Answer::Bytes`] back for later answers.
    pub fn give_back(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE_BYTES && self.spare.len() < SPARE_MOST {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// Notes that the log is durable up to this record. [`PendingAnswers::next`] then returns the
    /// answers that waited for it.
    pub fn release(&mut self, durable: Position) {
        self.durable = self.durable.max(durable);
        while let Some(&(position, timestamp)) = self.in_order.front() {
            if position > self.durable {
                break;
            }
            self.in_order.pop_front();
            self.commits.remove(&timestamp);
        }
        let durable = self.durable;
        while self.oldest.pop_front_if(|(at, _)| *at <= durable).is_some() {}
    }

    /// Removes and returns the next answer that need not wait any more.
    pub fn next(&mut self) -> Option<Answer> {
        let durable = self.durable;
        let ready = |(position, _): &mut (Position, Answer)| *position <= durable;
        self.messages.pop_front_if(ready).map(|(_, answer)| answer)
    }
}

/// Hashes the timestamps of `commits`. The seed keeps clients from choosing timestamps whose hashes
/// collide.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TimestampHash(u64);

impl BuildHasher for TimestampHash {
    type Hasher = TimestampHasher;

    fn build_hasher(&self) -> TimestampHasher {
        TimestampHasher(self.0)
    }
}

pub(crate) struct TimestampHasher(u64);

impl Hasher for TimestampHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, timestamp: u64) {
        let product = u128::from(self.0 ^ timestamp) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}
