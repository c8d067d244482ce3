//! Scans: one page of a range of this partition.

use dyno_txn_api::limits::PAGE_BYTES_MAX;
use dyno_txn_api::{
    Answer, Continuation, Direction, Found, Page, Result, Scan, Stamp, TableDef, TableId, index_id,
};

use super::access::{KeyRef, Stop};
use super::{Partition, Position};
use crate::message::{Head, Part};
use crate::store::{Order, Range, Slot};

/// A scan that is running.
struct Going<'a> {
    scan: &'a Scan,
    table: TableId,
    page: Page,
    places: Vec<Vec<u8>>,
    bytes: usize,
    /// The last key that was looked at.
    last: Option<Vec<u8>>,
    /// Rows that were deleted at or before this timestamp are skipped.
    deleted_after: Stamp,
    seen: Position,
}

impl Going<'_> {
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
    pub(super) fn scan(&mut self, head: &Head, scan: &Scan) -> Result<(Part, Position), Stop> {
        let def = self.schema.table(scan.table)?.clone();
        scan.check(def.columns.len(), def.indexes.len())?;
        let table = match scan.index {
            Some(index) => index_id(scan.table, index),
            None => scan.table,
        };
        let mut going = Going {
            scan,
            table,
            page: Page::default(),
            places: Vec::new(),
            bytes: 0,
            last: scan.after.as_ref().map(|after| after.0.clone()),
            deleted_after: self.deleted_unseen(head.stamp),
            seen: 0,
        };
        let whole = self.go_through(head, &def, &mut going)?;
        self.record_range(head, &going, whole);
        if !whole {
            going.page.next = going.last.map(Continuation);
        }
        let answer = Answer::Page(going.page);
        let places = going.places;
        Ok((Part { answer, places }, going.seen))
    }

    /// Fills the page, and returns whether the range is exhausted.
    fn go_through(
        &mut self,
        head: &Head,
        def: &TableDef,
        going: &mut Going<'_>,
    ) -> Result<bool, Stop> {
        loop {
            let wanted = going.wanted();
            let slots = self.next_slots(going, wanted);
            self.prefetch_slots(&slots[..slots.len().min(going.scan.page_rows())]);
            let mut seen = 0;
            for &slot in &slots {
                if going.page.rows.len() == going.scan.page_rows() || going.bytes >= PAGE_BYTES_MAX
                {
                    break;
                }
                self.look_at(head, def, going, slot)?;
                seen += 1;
            }
            if let Some(last) = slots[..seen].last() {
                going.last = Some(self.store.key(*last).to_vec());
            }
            if seen < slots.len() {
                return Ok(false);
            }
            if slots.len() < wanted {
                return Ok(true);
            }
        }
    }

    /// A scan at `stamp` may skip rows that were deleted at or before the returned timestamp: it
    /// does not see them, and their deletions are durable, so that it need not wait for the log.
    fn deleted_unseen(&self, stamp: Stamp) -> Stamp {
        let not_durable = self.held.oldest_commit();
        stamp.min(not_durable.saturating_sub(1))
    }

    fn next_slots(&mut self, going: &Going<'_>, most: usize) -> Vec<Slot> {
        let range = Range {
            table: going.table,
            start: &going.scan.start,
            end: going.scan.end.as_deref(),
            direction: going.scan.direction,
            after: going.last.as_deref(),
            deleted_after: going.deleted_after,
            most,
        };
        self.store.order(going.table).range(&range)
    }

    fn look_at(
        &mut self,
        head: &Head,
        def: &TableDef,
        going: &mut Going<'_>,
        slot: Slot,
    ) -> Result<(), Stop> {
        self.counters.scanned += 1;
        let (value, seen) = self.get_at(head.stamp, slot)?;
        going.seen = going.seen.max(seen);
        if value.is_none() {
            return Ok(());
        }
        let mut value = value;
        let mut key = self.store.key(slot).to_vec();
        let mut entry_place = None;
        if let Some(index) = going.scan.index {
            let entry = key;
            let (table, bytes) = (going.scan.table, def.key_of_entry(index, &entry)?);
            let (row, seen) = self.get(head, KeyRef { table, bytes })?;
            going.seen = going.seen.max(seen);
            if row.is_none() {
                return Ok(());
            }
            value = row;
            key = bytes.to_vec();
            entry_place = Some(entry);
        }
        let bytes = self.store.value(value).unwrap_or(&[]);
        if let Some(kept) = going.scan.keep(bytes)? {
            going.bytes += key.len() + kept.len();
            going.page.rows.push(Found { key, value: kept });
            going.places.extend(entry_place);
        }
        Ok(())
    }

    /// Notes the range that was read, gaps included, so that no older transaction may write into
    /// it.
    fn record_range(&mut self, head: &Head, going: &Going<'_>, whole: bool) {
        let (scan, after) = (going.scan, going.scan.after.as_ref().map(|after| &*after.0));
        // One byte more is the next key after the last one, which is thereby included.
        let next = |key: &[u8]| [key, &[0]].concat();
        let (start, end) = match scan.direction {
            Direction::Forward => {
                let start = after
                    .map_or(scan.start.clone(), next)
                    .max(scan.start.clone());
                let end = match &going.last {
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
                let start = match &going.last {
                    Some(last) if !whole => last.clone(),
                    _ => scan.start.clone(),
                };
                (start, end)
            }
        };
        self.reads
            .range(going.table, &start, end.as_deref(), head.stamp);
    }
}
