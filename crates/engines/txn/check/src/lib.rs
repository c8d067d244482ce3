//! Proof that transactions are strictly serializable.
//!
//! What it is: [`history`] keeps what clients asked and were answered; three judges read it without a line of
//! the engine's code: [`replay`] (in the order of the stamps, against a model), [`cycles`] (dependencies
//! between transactions, after Adya and Elle) and [`bank`] (money is neither made nor lost).
//! What it is not: a proof about power loss on real disks; the simulated disk loses unsynced writes instead.

pub mod bank;
pub mod cycles;
pub mod drive;
pub mod history;
pub mod replay;
pub mod simulate;
mod verdict;
pub mod work;

pub use verdict::{Rule, Verdict, Violation};
