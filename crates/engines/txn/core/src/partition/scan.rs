//! Scans: one page of a range of this partition.

use dyno_txn_api::limits::PAGE_BYTES_MAX;
use dyno_txn_api::{
    Answer, Continuation, Direction, Page, Result, Scan, ScanRow, TableDef, TableId, Timestamp,
    index_id,
};

use super::access::{KeyRef, Stop};
use super::{Partition, Position};
use crate::message::{Head, PartialAnswer};
use crate::store::{Order, Range, Slot};

/// A scan that is running.
struct PageScan<'a> {
    scan: &'a Scan,
    table: TableId,
    page: Page,
    places: Vec<Vec<u8>>,
    bytes: usize,
    /// The last key that was looked at.
    last: Option<Vec<u8>>,
    /// Rows that were deleted at or before this timestamp are skipped.
    deleted_after: Timestamp,
    seen: Position,
}

impl PageScan<'_> {
    /// How many rows to look at next. One more than the page has room for tells whether it is the
    /// last page.
    fn wanted(&self) -> usize {
        let room = self.scan.page_rows().saturating_sub(self.page.rows.len());
        room.saturating_add(1).min(Order::CHUNK)
    }
}

impl Partition {
    /// Reads one page. Returns it with the record up to which the log must be durable before a
    /// client is told.
    pub(super) fn scan(
        &mut self,
        head: &Head,
        scan: &Scan,
    ) -> Result<(PartialAnswer, Position), Stop> {
        let def = self.schema.table(scan.table)?.clone();
        scan.check(def.columns.len(), def.indexes.len())?;
        let table = match scan.index {
            Some(index) => index_id(scan.table, index),
            None => scan.table,
        };
        let mut page_scan = PageScan {
            scan,
            table,
            page: Page::default(),
            places: Vec::new(),
            bytes: 0,
            last: scan.after.as_ref().map(|after| after.0.clone()),
            deleted_after: self.deleted_unseen(head.timestamp),
            seen: 0,
        };
        let whole = self.fill_page(head, &def, &mut page_scan)?;
        self.record_range(head, &page_scan, whole);
        if !whole {
            page_scan.page.next = page_scan.last.map(Continuation);
        }
        let answer = Answer::Page(page_scan.page);
        let places = page_scan.places;
        Ok((
            PartialAnswer {
                answer,
                index_keys: places,
            },
            page_scan.seen,
        ))
    }

    /// Fills the page, and returns whether the range is exhausted.
    fn fill_page(
        &mut self,
        head: &Head,
        def: &TableDef,
        page_scan: &mut PageScan<'_>,
    ) -> Result<bool, Stop> {
        loop {
            let wanted = page_scan.wanted();
            let slots = self.next_slots(page_scan, wanted);
            self.prefetch_slots(&slots[..slots.len().min(page_scan.scan.page_rows())]);
            let mut seen = 0;
            for &slot in &slots {
                if page_scan.page.rows.len() == page_scan.scan.page_rows()
                    || page_scan.bytes >= PAGE_BYTES_MAX
                {
                    break;
                }
                self.visit(head, def, page_scan, slot)?;
                seen += 1;
            }
            if let Some(last) = slots[..seen].last() {
                page_scan.last = Some(self.store.key(*last).to_vec());
            }
            // Rows are left over, so the page is full. The next one begins behind `last`.
            if seen < slots.len() {
                return Ok(false);
            }
            if slots.len() < wanted {
                return Ok(true);
            }
        }
    }

    /// A scan at `timestamp` may skip rows that were deleted at or before the returned timestamp:
    /// it does not see them, and their deletions are durable, so that it need not wait for the log.
    fn deleted_unseen(&self, timestamp: Timestamp) -> Timestamp {
        let not_durable = self.pending.oldest_commit();
        timestamp.min(not_durable.saturating_sub(1))
    }

    fn next_slots(&mut self, page_scan: &PageScan<'_>, most: usize) -> Vec<Slot> {
        let range = Range {
            table: page_scan.table,
            start: &page_scan.scan.start,
            end: page_scan.scan.end.as_deref(),
            direction: page_scan.scan.direction,
            after: page_scan.last.as_deref(),
            deleted_after: page_scan.deleted_after,
            most,
        };
        self.store.order(page_scan.table).range(&range)
    }

    fn visit(
        &mut self,
        head: &Head,
        def: &TableDef,
        page_scan: &mut PageScan<'_>,
        slot: Slot,
    ) -> Result<(), Stop> {
        self.counters.scanned += 1;
        let (value, seen) = self.get_at(head.timestamp, slot)?;
        page_scan.seen = page_scan.seen.max(seen);
        if value.is_none() {
            return Ok(());
        }
        let mut value = value;
        let mut key = self.store.key(slot).to_vec();
        let mut entry_place = None;
        // The row is read beside the entry, at the same timestamp: an intent on it blocks the scan
        // as one on the entry does.
        if let Some(index) = page_scan.scan.index {
            let entry = key;
            let (table, bytes) = (page_scan.scan.table, def.key_of_entry(index, &entry)?);
            let (row, seen) = self.get(head, KeyRef { table, bytes })?;
            page_scan.seen = page_scan.seen.max(seen);
            if row.is_none() {
                return Ok(());
            }
            value = row;
            key = bytes.to_vec();
            entry_place = Some(entry);
        }
        let bytes = self.store.value(value).unwrap_or(&[]);
        if let Some(kept) = page_scan.scan.keep(bytes)? {
            page_scan.bytes += key.len() + kept.len();
            page_scan.page.rows.push(ScanRow { key, value: kept });
            page_scan.places.extend(entry_place);
        }
        Ok(())
    }

    /// Notes the range that was read, gaps included, so that no older transaction may write into
    /// it.
    fn record_range(&mut self, head: &Head, page_scan: &PageScan<'_>, whole: bool) {
        let (scan, after) = (
            page_scan.scan,
            page_scan.scan.after.as_ref().map(|after| &*after.0),
        );
        // One byte more is the next key after the last one, which is thereby included.
        let next = |key: &[u8]| [key, &[0]].concat();
        let (start, end) = match scan.direction {
            Direction::Forward => {
                let start = after
                    .map_or(scan.start.clone(), next)
                    .max(scan.start.clone());
                let end = match &page_scan.last {
                    Some(last) if !whole => Some(next(last)),
                    _ => scan.end.clone(),
                };
                (start, end)
            }
            Direction::Backward => {
                let end = match (after, &scan.end) {
                    (Some(after), Some(end)) if after >= &**end => Some(end.clone()),
                    (Some(after), _) => Some(after.to_vec()),
                    (None, end) => end.clone(),
                };
                let start = match &page_scan.last {
                    Some(last) if !whole => last.clone(),
                    _ => scan.start.clone(),
                };
                (start, end)
            }
        };
        self.reads
            .range(page_scan.table, &start, end.as_deref(), head.timestamp);
    }
}
