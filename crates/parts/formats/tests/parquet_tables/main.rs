//! Tables that batches became, read back by those who know the format.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arrow_reads;
mod made;
mod others_read;
mod refused;
mod same_bytes;
