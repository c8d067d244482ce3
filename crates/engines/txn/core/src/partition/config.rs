//! What a partition is made with, and what it counts.

use dyno_txn_api::Timestamp;

use crate::message::PartitionId;
use crate::planted::Planted;

/// The settings of a partition. Times are nanoseconds of the driver's clock.
#[derive(Debug, Clone)]
pub struct Config {
    /// The number of this partition, from 0.
    pub id: PartitionId,
    /// How many partitions there are.
    pub partitions: u32,
    /// Mixed into hashes, so that a client cannot choose keys that collide.
    pub seed: u64,
    /// Whether records are written. If not, every answer is given at once and no data survives a
    /// restart.
    pub log: bool,
    /// Bytes of rows, versions and index above which writes other than deletes are refused.
    pub memory_bytes: u64,
    /// How far behind the newest timestamp a transaction may read. A timestamp counts as a
    /// nanosecond.
    pub retention_ns: u64,
    /// How long work waits for an older transaction before it pushes that one.
    pub wait_ns: u64,
    /// How long an interactive transaction lives without a heartbeat or an operation.
    pub heartbeat_ns: u64,
    /// The interval at which an unanswered message between partitions is sent again.
    pub resend_ns: u64,
    /// How much work may wait at once. More is refused as overloaded.
    pub waiting_max: usize,
    /// Bugs that are switched on to test the checkers.
    pub planted: Planted,
}

impl Config {
    /// Partition `id` of `partitions`, with times for a network of one machine.
    pub fn new(id: PartitionId, partitions: u32) -> Self {
        Self {
            id,
            partitions,
            seed: 0x5eed,
            log: true,
            memory_bytes: 1 << 30,
            retention_ns: 5_000_000_000,
            wait_ns: 10_000_000,
            heartbeat_ns: 2_000_000_000,
            resend_ns: 200_000_000,
            waiting_max: 64 << 10,
            planted: Planted::none(),
        }
    }
}

/// The source of timestamps for one-shots that come without one.
pub trait Timestamps {
    /// A timestamp above all that were ever issued, or none if there is no oracle in this process.
    fn next(&mut self) -> Option<Timestamp>;

    /// Whether an oracle may have issued this timestamp. One from the future would make the
    /// partition refuse all others, so those that clients send are checked.
    fn plausible(&mut self, timestamp: Timestamp) -> bool;
}

/// Counts since the partition was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transactions committed by one log record of this partition alone, without votes.
    pub committed_inline: u64,
    /// Transactions that this partition committed as their record holder.
    pub committed_across: u64,
    /// Transactions aborted as their record holder, and one-shots that ended with an error.
    pub aborted: u64,
    /// Operations that gave way to a younger transaction's access, or to an owner with precedence.
    pub conflicts: u64,
    /// How often work waited for another transaction's intent.
    pub waits: u64,
    /// Pushes sent to record holders by work that had waited long enough.
    pub pushes: u64,
    /// Runs of one-shots given up because of an intent, or of rows that other partitions hold.
    pub reruns: u64,
    /// Rows that scans visited, deleted ones included.
    pub scanned: u64,
}
