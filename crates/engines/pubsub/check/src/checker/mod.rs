//! Judges a run from its evidence. The checker is pure, does no I/O, and shares no line of code
//! with what it judges.
//!
//! The rules, one file each:
//! - `sends`: each message has one outcome.
//! - `log`: in the log nothing is twice, nothing that was not sent, nothing that was refused,
//!   nothing damaged; offsets are contiguous; each producer's messages in a partition are in order;
//!   what was acknowledged is there, where it was said to be. An unknown outcome may be there once,
//!   or not.
//! - `agreement`: all readers of the log saw the same.
//! - `deliveries`: each group was given all that is in the log, what it was given is what is there,
//!   in order within one right to a partition, and twice no more often than the group's own counter
//!   allows.
//! - `cursors`: no cursor was ever ahead of what was delivered before, none by an outdated right.
//! - `queue`: the rules of the queue mode, in their place.

mod agreement;
mod cursors;
mod deliveries;
mod log;
mod queue;
mod sends;
mod violation;

pub use queue::{QueueEvidence, QueueLeft, check_queue};
pub use violation::{Rule, Verdict, Violation};

use crate::history::Event;
use crate::message::Fingerprint;
use violation::Findings;

/// The evidence that a run has left.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// How many partitions the topic has; they are numbered from 0.
    pub partitions: u32,
    /// How many groups there are; they are numbered from 0, and all began at the earliest offset.
    pub groups: u32,
    /// What clients asked and were answered.
    pub events: &'a [Event],
    /// The log at the end, once for each way of reading it.
    pub readings: &'a [Reading],
    /// The cursor of each group in each partition at the end.
    pub cursors: &'a [Cursor],
    /// Whether the server was never killed. Then no accepted commit may be missing at the end.
    pub server_stayed: bool,
    /// Whether consumers were given the time to reach the end, so that all must have been
    /// delivered.
    pub drained: bool,
}

/// The log as one reader saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Which reader, for the sentences.
    pub reader: String,
    /// One for each partition, in their order.
    pub partitions: Vec<PartitionLog>,
}

/// One partition as one reader saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionLog {
    /// The first offset that retention has left.
    pub first_offset: i64,
    /// The offset that the next message will get.
    pub next_offset: i64,
    /// What the reader was given, in the order in which it was given.
    pub entries: Vec<Entry>,
}

/// One message of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The offset that the reader gave it.
    pub offset: i64,
    /// Its identity and content, or why it is not a message that a check could have sent.
    pub fingerprint: Result<Fingerprint, String>,
}

/// The cursor of a group in a partition, from the group's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The group, by its number.
    pub group: u32,
    /// The number of the partition, from 0.
    pub partition: u32,
    /// The next offset that the group will be given.
    pub committed: i64,
    /// Messages that may have been delivered twice, as the group counts them.
    pub redelivered: u64,
    /// Messages that retention took before the group had them, as the group counts them.
    pub lost: u64,
}

/// Judges a run of the log, in direct mode or through brokers.
pub fn check(evidence: &Evidence<'_>) -> Verdict {
    let mut findings = Findings::default();
    let sends = sends::gather(evidence.events, &mut findings);
    for reading in evidence.readings {
        log::check(evidence, reading, &sends, &mut findings);
    }
    agreement::check(evidence.readings, &mut findings);
    let deliveries = deliveries::check(evidence, &sends, &mut findings);
    cursors::check(evidence, &deliveries, &mut findings);
    let mut verdict = findings.verdict();
    verdict.messages = sends.count();
    verdict.acknowledged = sends.acknowledged();
    verdict.failed = sends.failed();
    verdict.unknown = verdict.messages - verdict.acknowledged - verdict.failed;
    verdict.delivered = deliveries.total();
    verdict.redelivered = deliveries.again();
    verdict
}
