//! Commands over a directory of TPC-H tables.

pub mod query;
pub mod verify;

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was found to be wrong.
    Good,
    /// Something is not what it should be, and the output says what.
    Wrong,
}
