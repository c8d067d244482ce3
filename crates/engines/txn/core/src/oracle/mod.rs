//! Stamps: each above all that were given before, across restarts and failovers.

mod batcher;
mod clock;
mod remote;

pub use batcher::Batcher;
pub use clock::Clock;
pub use remote::Oracle;
