//! Tables that batches became, read back by those who know the format.

mod arrow_reads;
mod made;
mod others_read;
mod refused;
