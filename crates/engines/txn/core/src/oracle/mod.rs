//! Oracles issue timestamps, each above all that were issued before, across restarts and failovers.

mod batcher;
mod candidate;
mod clock;
mod remote;

pub use batcher::Batcher;
pub use candidate::Candidate;
pub use clock::Clock;
pub use remote::Oracle;

use dyno_txn_api::Timestamp;

/// What a partition keeps for an oracle. Bounds are ordered by their epoch first: one of a newer
/// epoch fences the oracles before it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bound {
    pub epoch: u64,
    /// No oracle up to this epoch issues a timestamp above it.
    pub timestamp: Timestamp,
}
