//! GROUP BY a dictionary-coded column, on its codes.
//!
//! The general plan makes a string of every row and hashes it. Here a row's code is the index of
//! its group, so a group costs an addition into an array; the strings are looked at once for each
//! file and code, when the arrays of all files and threads are merged.
//!
//! [`CodedAggregateRule`] replaces the aggregation of a plan by [`CodedAggregateExec`] where the
//! query and the files allow it. What it does not know stays with the general plan, which is also
//! what the tests compare it with (`SET dyno.coded_aggregate = false`).

mod batch;
mod exec;
mod groups;
mod names;
mod rule;
mod slots;
mod spec;
mod workers;

pub use exec::CodedAggregateExec;
pub use rule::CodedAggregateRule;
