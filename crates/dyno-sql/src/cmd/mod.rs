//! One file for each command.

pub mod bench;
pub mod query;
pub mod readback;
pub mod tpch;
