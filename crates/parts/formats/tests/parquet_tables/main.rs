//! Tables made of batches, read back by other readers of the format.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arrow_reads;
mod others_read;
mod refused;
mod same_bytes;
mod tables;
