//! One file for each command.

pub mod bench;
pub mod features;
pub mod query;
pub mod readback;
pub mod serve;
pub mod tpch;
