//! Compares two commands of the user.
//!
//! Both run again and again in blocks: each block has one run of the old command, one of the new
//! one, and a second run of the old one, the control arm, in an order that is balanced over pairs
//! of blocks. What the control arm differs from the old command by is the noise of this machine,
//! and a difference inside it is not called one.
//!
//! A run is what `/bin/sh -c COMMAND` does from its start to its end, so the start of the shell,
//! about a millisecond, is in every figure.

mod error;
mod judge;
mod measure;

pub use error::AbError;
pub use judge::{Answer, Figure, Outcome, judge};
pub use measure::{Block, Length, Measured, Plan, Run, Side, measure};
