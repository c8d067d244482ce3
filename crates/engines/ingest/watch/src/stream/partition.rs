//! One partition, and the batch that is being gathered from it.

use std::time::Instant;

use super::Batching;
use crate::metrics::PartitionMetrics;

/// One partition on its way into the table.
pub(super) struct Partition {
    pub(super) number: i32,
    pub(super) stream: String,
    pub(super) metrics: PartitionMetrics,
    /// The log's end when it was last asked for.
    pub(super) end: u64,
    /// With `once`: the log's end at the beginning.
    pub(super) goal: u64,
    /// The offset of the batch's first record. Everything before it is in the table.
    pub(super) first: u64,
    /// The offset to read next.
    pub(super) next: u64,
    pub(super) text: Vec<u8>,
    pub(super) since: Option<Instant>,
    /// A commit of the batch has begun. Nothing may be added until it is known to have succeeded.
    pub(super) sealed: bool,
    /// The spans in the table that may be merged: first offset and number of records.
    pub(super) folding: Vec<(u64, u64)>,
}

impl Partition {
    pub(super) fn records(&self) -> u64 {
        self.next - self.first
    }

    pub(super) fn takes(&self, batching: &Batching) -> bool {
        !self.sealed && self.records() < batching.records && self.text.len() < batching.bytes
    }

    pub(super) fn is_due(&self, batching: &Batching, now: Instant) -> bool {
        let old = self
            .since
            .is_some_and(|since| now.duration_since(since) >= batching.wait);
        self.records() > 0 && (old || !self.takes(batching))
    }

    /// Appends a record. One with another offset than the next is ignored.
    pub(super) fn add(&mut self, offset: u64, value: &[u8]) {
        // After a failed fetch the same records may come again. Gaps cannot come: `Source` promises
        // none.
        if offset == self.next {
            push_line(&mut self.text, value);
            self.next += 1;
            self.since.get_or_insert_with(Instant::now);
        }
    }

    /// Updates the metrics.
    pub(super) fn tell(&self) {
        let number = |offset: u64| i64::try_from(offset).unwrap_or(i64::MAX);
        self.metrics.position.set(number(self.first));
        self.metrics
            .lag
            .set(number(self.end.saturating_sub(self.first)));
    }
}

/// Appends a record as lines, with a final line feed.
pub(super) fn push_line(text: &mut Vec<u8>, value: &[u8]) {
    text.extend_from_slice(value);
    if value.last() != Some(&b'\n') {
        text.push(b'\n');
    }
}
