//! Who read what is not there: absent keys, and ranges. Reads of rows that are there lie beside the row.
//!
//! Both structures have a fixed size and only ever say too much, which costs an abort, never too
//! little. Absent keys: an array of stamps by hash; keys that share a place share its newest stamp.
//! Ranges: the newest few, first in first out; what falls out raises a watermark for all keys.

use std::collections::VecDeque;

use dyno_txn_api::{Stamp, TableId};

/// Places for absent keys; 512 KiB.
const PLACES: usize = 1 << 16;
/// Ranges that are kept one by one.
const RANGES_MAX: usize = 4096;

#[derive(Debug)]
struct Range {
    table: TableId,
    start: Box<[u8]>,
    end: Option<Box<[u8]>>,
    stamp: Stamp,
}

#[derive(Debug)]
pub(crate) struct ReadCache {
    absent: Vec<Stamp>,
    ranges: VecDeque<Range>,
    /// The newest stamp among `ranges`: who is younger than it need not look.
    newest: Stamp,
    watermark: Stamp,
}

impl ReadCache {
    pub fn new() -> Self {
        Self {
            absent: vec![0; PLACES],
            ranges: VecDeque::new(),
            newest: 0,
            watermark: 0,
        }
    }

    /// The key with this hash was looked for and is not there.
    pub fn absent(&mut self, hash: u32, stamp: Stamp) {
        let place = &mut self.absent[hash as usize % PLACES];
        *place = stamp.max(*place);
    }

    /// A range was read, gaps included.
    pub fn range(&mut self, table: TableId, start: &[u8], end: Option<&[u8]>, stamp: Stamp) {
        self.newest = self.newest.max(stamp);
        // Scans of the same range by ever younger transactions are the usual case.
        if let Some(last) = self.ranges.back_mut()
            && last.table == table
            && *last.start == *start
            && last.end.as_deref() == end
        {
            last.stamp = last.stamp.max(stamp);
            return;
        }
        if self.ranges.len() == RANGES_MAX
            && let Some(oldest) = self.ranges.pop_front()
        {
            self.watermark = self.watermark.max(oldest.stamp);
        }
        self.ranges.push_back(Range {
            table,
            start: start.into(),
            end: end.map(Into::into),
            stamp,
        });
    }

    /// All keys may have been read up to this stamp.
    pub fn raise(&mut self, stamp: Stamp) {
        self.watermark = self.watermark.max(stamp);
    }

    /// The newest stamp that may have read this key while it was not there, or one above that which is
    /// not above `writer`, the stamp of who wants to write.
    pub fn newest(&self, hash: u32, table: TableId, key: &[u8], writer: Stamp) -> Stamp {
        let mut newest = self.watermark.max(self.absent[hash as usize % PLACES]);
        if self.newest <= writer {
            // The usual case, without a look at each range.
            newest = newest.max(self.newest);
        } else {
            for range in &self.ranges {
                let inside = range.table == table
                    && *range.start <= *key
                    && range.end.as_ref().is_none_or(|end| *key < **end);
                if inside {
                    newest = newest.max(range.stamp);
                }
            }
        }
        newest
    }
}
