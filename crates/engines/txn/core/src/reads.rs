//! The read cache: the newest reads of absent keys and of ranges. Reads of rows are noted in the
//! row itself.
//!
//! Both structures have a fixed size, and may only report a read that is too new. That costs an
//! abort, while one that is too old would let a write slip below a read. Absent keys are an array
//! of timestamps indexed by hash, in which keys that collide share the newest timestamp. Ranges are
//! a queue: the oldest one that falls out raises a watermark that holds for all keys.

use std::collections::VecDeque;

use dyno_txn_api::{TableId, Timestamp};

/// Entries for absent keys, 512 KiB in all.
const ENTRIES: usize = 1 << 16;
/// Ranges that are kept one by one.
const RANGES_MAX: usize = 4096;

#[derive(Debug)]
struct Range {
    table: TableId,
    start: Box<[u8]>,
    end: Option<Box<[u8]>>,
    timestamp: Timestamp,
}

#[derive(Debug)]
pub(crate) struct ReadCache {
    absent: Vec<Timestamp>,
    ranges: VecDeque<Range>,
    /// The newest timestamp among `ranges`. A younger writer need not look at them.
    newest: Timestamp,
    watermark: Timestamp,
}

impl ReadCache {
    pub fn new() -> Self {
        Self {
            absent: vec![0; ENTRIES],
            ranges: VecDeque::new(),
            newest: 0,
            watermark: 0,
        }
    }

    /// Notes that a transaction at this timestamp found no row for a key with this hash.
    pub fn absent(&mut self, hash: u32, timestamp: Timestamp) {
        let entry = &mut self.absent[hash as usize % ENTRIES];
        *entry = timestamp.max(*entry);
    }

    /// Notes that a range was read, its gaps included.
    pub fn range(
        &mut self,
        table: TableId,
        start: &[u8],
        end: Option<&[u8]>,
        timestamp: Timestamp,
    ) {
        self.newest = self.newest.max(timestamp);
        // Scans of the same range by ever younger transactions are the usual case.
        if let Some(last) = self.ranges.back_mut()
            && last.table == table
            && *last.start == *start
            && last.end.as_deref() == end
        {
            last.timestamp = last.timestamp.max(timestamp);
            return;
        }
        if self.ranges.len() == RANGES_MAX
            && let Some(oldest) = self.ranges.pop_front()
        {
            self.watermark = self.watermark.max(oldest.timestamp);
        }
        self.ranges.push_back(Range {
            table,
            start: start.into(),
            end: end.map(Into::into),
            timestamp,
        });
    }

    /// Assumes from now on that every key was read at this timestamp.
    pub fn raise(&mut self, timestamp: Timestamp) {
        self.watermark = self.watermark.max(timestamp);
    }

    /// The newest timestamp that may have read this key while it was absent. If that is not above
    /// `writer`, the timestamp of the transaction that wants to write, a larger one that is not
    /// above `writer` either may be returned.
    pub fn newest(&self, hash: u32, table: TableId, key: &[u8], writer: Timestamp) -> Timestamp {
        let mut newest = self.watermark.max(self.absent[hash as usize % ENTRIES]);
        if self.newest <= writer {
            // The usual case, without a look at each range.
            newest = newest.max(self.newest);
        } else {
            for range in &self.ranges {
                let inside = range.table == table
                    && *range.start <= *key
                    && range.end.as_ref().is_none_or(|end| *key < **end);
                if inside {
                    newest = newest.max(range.timestamp);
                }
            }
        }
        newest
    }
}
