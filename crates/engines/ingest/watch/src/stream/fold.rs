//! Many small spans made one.

use dyno_ingest::table::Span;

use super::partition::push_line;
use super::{FETCH_BYTES, Stream, WAIT_MOST, batch};
use crate::WatchError;

/// Spans of a stream that lie behind each other and are small enough to be one, before they are
/// made one.
const FOLD_AT: usize = 16;
/// One in so many of the records of a fold may be in one of its spans: a large one is not read
/// again for a few more.
const SHARE_MOST: u64 = 8;
/// What a fold may have, so that it neither holds up the next batches for long nor takes much
/// memory.
const FOLD_RECORDS: u64 = 1_000_000;
const FOLD_BYTES: usize = 64 << 20;

impl Stream<'_> {
    /// Makes one of the small spans at the end of a stream when there are many, so that neither the
    /// ledger nor the number of files grows with the number of commits. The log still has their
    /// records; where it does not any more, they stay as they are.
    pub(super) fn fold(&mut self, number: i32, say: &dyn Fn(&str)) -> Result<(), WatchError> {
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
                if of == number && offset == next && offset < end {
                    push_line(&mut text, value);
                    next += 1;
                }
            };
            let read = self
                .source
                .fetch(&[(number, before)], FETCH_BYTES, WAIT_MOST, &mut take);
            // What cannot be read again is left as it is: nothing is wrong with it.
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
            Err(error @ WatchError::Batch { .. }) => {
                say(&format!("left as it is: {error}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Takes the last spans that are to be one out of the list, once there are so many and none has
/// more than its share of them: a record is then in four or five folds in a day of commits, and
/// some forty spans are left of it. Gives the first offset and the one behind the last.
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
        // None above the bound, and none over a gap.
        let even = |step: u64| (0..16).map(|n| (n * step, 10)).collect::<Vec<_>>();
        assert_eq!(foldable(&mut even(10), 159), None);
        assert_eq!(foldable(&mut even(11), 1_000), None);
        assert_eq!(foldable(&mut even(10), 160), Some((0, 160)));
    }
}
