//! Merges many small spans into one.

use dyno_ingest::table::Span;
use tracing::warn;

use super::partition::push_line;
use super::{FETCH_BYTES, Stream, WAIT_MOST, batch};
use crate::WatchError;

/// How many consecutive small spans there must be before they are merged.
const FOLD_AT: usize = 16;
/// No span may have more than one in this many of a merge's records, so that a large span is not
/// read again because of a few more records.
const SHARE_MOST: u64 = 8;
/// The most records of a merge, which bounds its memory and how long it delays the next batches.
const FOLD_RECORDS: u64 = 1_000_000;
const FOLD_BYTES: usize = 64 << 20;

impl Stream<'_> {
    /// Merges the small spans at the end of a stream once there are many, so that neither the
    /// ledger nor the number of files grows with the number of commits. The records are read again
    /// from the log; if it no longer has them, the spans stay as they are.
    pub(super) fn fold(&mut self, number: i32) -> Result<(), WatchError> {
        let Some(partition) = self.partitions.get_mut(&number) else {
            return Ok(());
        };
        let Some((first, end)) = foldable(&mut partition.folding, FOLD_RECORDS) else {
            return Ok(());
        };
        let stream = partition.stream.clone();
        let mut text = Vec::new();
        let mut next = first;
        while next < end && text.len() < FOLD_BYTES {
            let before = next;
            let mut take = |of: i32, offset: u64, value: &[u8]| {
                // A fetch may return records beyond the end or from before the position, which are
                // not part of the merge.
                if of == number && offset == next && offset < end {
                    push_line(&mut text, value);
                    next += 1;
                }
            };
            let read = self
                .source
                .fetch(&[(number, before)], FETCH_BYTES, WAIT_MOST, &mut take);
            // Spans that cannot be read again stay as they are, which is correct, only larger in
            // number.
            if read.is_err() || next == before {
                return Ok(());
            }
        }
        if next < end {
            return Ok(());
        }
        let span = Span {
            stream,
            first,
            last: end - 1,
        };
        match batch::load(
            &self.settings,
            self.destination,
            number,
            &span,
            &text.into(),
        ) {
            Ok(_) => {
                if let Some(partition) = self.partitions.get_mut(&number) {
                    partition.folding.push((first, end - first));
                }
                Ok(())
            }
            // The table refuses a merge that does not have exactly the rows of its spans. Then the
            // log has changed, and the spans are right.
            Err(error @ WatchError::Batch { .. }) => {
                warn!("small batches stay as they are: {error}");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Removes the last spans that should be merged from the list, once there are enough and none has
/// more than its share of the records. So a record takes part in four or five merges in a day of
/// commits, and about forty spans remain. Returns the first offset and the one after the last.
fn foldable(spans: &mut Vec<(u64, u64)>, most_records: u64) -> Option<(u64, u64)> {
    let at = spans.len().checked_sub(FOLD_AT)?;
    let last = &spans[at..];
    let records: u64 = last.iter().map(|(_, records)| records).sum();
    let largest = last.iter().map(|(_, records)| *records).max()?;
    let end = |(first, records): (u64, u64)| first + records;
    let without_gap = last.windows(2).all(|pair| end(pair[0]) == pair[1].0);
    let found = (last.first()?.0, end(*last.last()?));
    if records > most_records || !without_gap || largest > records / SHARE_MOST {
        return None;
    }
    spans.truncate(at);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_become_one_as_they_grow_and_a_large_one_is_left_alone() {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        let (mut next, mut read_again) = (0, 0);
        for _ in 0..10_000 {
            spans.push((next, 10));
            next += 10;
            if let Some((first, end)) = foldable(&mut spans, 1_000_000) {
                spans.push((first, end - first));
                read_again += end - first;
            }
        }
        assert!(spans.len() < 100, "{} spans", spans.len());
        assert!(read_again < 5 * next, "{read_again} of {next}");
        let records: u64 = spans.iter().map(|(_, records)| records).sum();
        assert_eq!(records, next);
        // Nothing merges above the bound or across a gap.
        let even = |step: u64| (0..16).map(|n| (n * step, 10)).collect::<Vec<_>>();
        assert_eq!(foldable(&mut even(10), 159), None);
        assert_eq!(foldable(&mut even(11), 1_000), None);
        assert_eq!(foldable(&mut even(10), 160), Some((0, 160)));
    }
}
