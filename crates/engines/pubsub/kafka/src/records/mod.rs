//! Batches of records, as Kafka's clients write and read them, version 2 of the format
//! ("Record batch" in the documentation of Apache Kafka).

mod batch;
mod compression;
mod varint;

use bytes::Bytes;

pub use batch::{BatchHead, BatchWriter, RecordsError, from_batch, read_head};

/// Reads bytes as a batch with all its records; false if they are not one. For fuzz targets, which
/// need no server.
pub fn is_batch(bytes: Bytes, most_bytes: usize) -> bool {
    let batch = read_head(bytes);
    batch.is_ok_and(|(head, packed)| from_batch(&head, packed, 0, most_bytes).is_ok())
}

#[cfg(test)]
mod tests;
