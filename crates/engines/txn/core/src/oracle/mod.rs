//! Oracles issue timestamps, each above all that were issued before, across restarts and failovers.

mod batcher;
mod candidate;
mod clock;
mod remote;

pub use batcher::Batcher;
pub use candidate::Candidate;
pub use clock::Clock;
pub use remote::Oracle;
