//! One page of a range of this partition.

use dyno_txn_api::limits::PAGE_BYTES_MAX;
use dyno_txn_api::{
    Answer, Continuation, Direction, Found, Page, Result, Scan, TableDef, TableId, index_id,
};

use super::access::{KeyRef, Stop};
use super::{Partition, Position};
use crate::message::{Head, Part};
use crate::store::{Order, Slot};

/// A scan under way.
struct Going<'a> {
    scan: &'a Scan,
    table: TableId,
    page: Page,
    places: Vec<Vec<u8>>,
    bytes: usize,
    /// The last place that was looked at.
    last: Option<Vec<u8>>,
    seen: Position,
}

impl Partition {
    /// The page, and up to where the log must be durable before somebody is told.
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

    /// Fills the page; whether the range is through.
    fn go_through(
        &mut self,
        head: &Head,
        def: &TableDef,
        going: &mut Going<'_>,
    ) -> Result<bool, Stop> {
        loop {
            let slots = self.next_slots(going);
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
            if slots.len() < Order::CHUNK {
                return Ok(true);
            }
        }
    }

    fn next_slots(&mut self, going: &Going<'_>) -> Vec<Slot> {
        let range = (&*going.scan.start, going.scan.end.as_deref());
        let after = going.last.as_deref();
        let order = self.store.order(going.table);
        order.range(going.table, range, going.scan.direction, after)
    }

    fn look_at(
        &mut self,
        head: &Head,
        def: &TableDef,
        going: &mut Going<'_>,
        slot: Slot,
    ) -> Result<(), Stop> {
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

    /// Nobody older may put something where this scan found nothing.
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
