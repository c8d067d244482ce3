//! Sequences of idempotent producers, which Kafka counts in 31 bits and the log in 64.
//!
//! A sequence of the log has the producer's epoch in its upper 16 bits, which
//! [`dyno_pubsub::begins_epoch`] explains, then how often Kafka's sequence went past its largest
//! value, then that sequence itself. How often can only be told from the sequence before, so the
//! last one of each producer and partition is kept here, and read from the database at first.

use std::collections::HashMap;

use dyno_pubsub::{EPOCH_SHIFT, Result, TopicPartition, epoch};
use parking_lot::Mutex;

use crate::store::Store;

/// Kafka's sequences go from 0 to one less than this, and begin again.
const ROUND: i64 = 1 << 31;
/// The most producers in partitions that are remembered. All are forgotten beyond that, and read
/// from the database again.
const MOST: usize = 100_000;

/// A producer in a partition of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Writer {
    pub key: TopicPartition,
    pub producer_id: i64,
}

/// The last sequence of each producer in each partition, as the log counts.
#[derive(Debug, Default)]
pub struct Sequences(Mutex<HashMap<Writer, i64>>);

impl Sequences {
    /// The sequence in the log of a batch's first record. `base` is Kafka's, `count` the number of
    /// its records.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub fn first_of_batch(
        &self,
        store: &Store,
        writer: Writer,
        producer_epoch: i16,
        (base, count): (i32, u32),
    ) -> Result<i64> {
        // The lock is not held while the database is asked, or one slow answer would hold up all
        // producers. Of two batches that both ask, the second may get the later answer; both are
        // far less than half a round away, so each batch gets the same sequence by either.
        let known = self.0.lock().get(&writer).copied();
        let last = match known {
            Some(last) => last,
            None => store.last_sequence(writer.key, writer.producer_id)?,
        };
        let first = unrolled(last, producer_epoch, base);
        let mut sequences = self.0.lock();
        if sequences.len() >= MOST {
            sequences.clear();
        }
        // A batch may overtake another on its way here, so the largest one counts. If the batch
        // fails, the next one is compared with a sequence that is a little too large, which does
        // not change what is nearest.
        let entry = sequences.entry(writer).or_insert(last);
        *entry = (*entry).max(first + i64::from(count) - 1);
        Ok(first)
    }
}

/// The sequence in the log that is nearest to the one after `last`.
fn unrolled(last: i64, producer_epoch: i16, base: i32) -> i64 {
    let producer_epoch = i64::from(producer_epoch.max(0));
    let start = producer_epoch << EPOCH_SHIFT;
    let base = i64::from(base.max(0));
    if epoch(last) != producer_epoch {
        return start + base;
    }
    let expected = last + 1 - start;
    let near = expected - expected % ROUND + base;
    // Half a round is far more than what can be on its way at once.
    let unrolled = match near - expected {
        ahead if ahead > ROUND / 2 && near >= ROUND => near - ROUND,
        behind if behind < -ROUND / 2 => near + ROUND,
        _ => near,
    };
    start + unrolled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_that_begins_again_goes_on_in_the_log() {
        let largest = (ROUND - 1) as i32;
        assert_eq!(unrolled(-1, 0, 0), 0);
        assert_eq!(unrolled(99, 0, 100), 100);
        // A repetition stays where it was.
        assert_eq!(unrolled(99, 0, 90), 90);
        assert_eq!(unrolled(ROUND - 2, 0, largest), ROUND - 1);
        assert_eq!(unrolled(ROUND - 1, 0, 0), ROUND);
        assert_eq!(unrolled(ROUND + 4, 0, 5), ROUND + 5);
        assert_eq!(unrolled(ROUND + 4, 0, largest - 1), ROUND - 2);
        assert_eq!(unrolled(2 * ROUND - 1, 0, 0), 2 * ROUND);
    }

    #[test]
    fn another_epoch_counts_from_the_beginning() {
        let third = 3_i64 << EPOCH_SHIFT;
        assert_eq!(unrolled(99, 3, 0), third);
        assert_eq!(unrolled(third + 9, 3, 10), third + 10);
        assert_eq!(unrolled(third + 9, 2, 10), (2_i64 << EPOCH_SHIFT) + 10);
    }
}
