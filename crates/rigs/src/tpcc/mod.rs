//! TPC-C's transactions with a clock beside them, for the command and for suites.

mod measured;

pub use measured::{Measured, OfKind, measure};
