//! Batches of records, as Kafka's clients write and read them, version 2 of the format
//! ("Record batch" in the documentation of Apache Kafka).

mod batch;
mod compression;
mod varint;

pub use batch::{BatchHead, RecordsError, Written, from_batch, read_head, to_batches};

#[cfg(test)]
mod tests;
