//! Keys of tables in order.

use std::collections::BTreeMap;
use std::ops::Bound;

use dyno_txn_api::{Direction, TableId};

use super::Slot;

type Keys = BTreeMap<Box<[u8]>, Slot>;

#[derive(Debug, Default)]
pub(crate) struct Order {
    tables: Vec<(TableId, Keys)>,
}

impl Order {
    /// Rows that one look returns at most; a longer scan looks again from the last one.
    pub const CHUNK: usize = 64;

    pub fn has(&self, table: TableId) -> bool {
        self.of(table).is_some()
    }

    pub fn build(&mut self, table: TableId, rows: Vec<(&[u8], Slot)>) {
        let keys = rows.into_iter().map(|(key, slot)| (key.into(), slot));
        let keys: Keys = keys.collect();
        if !self.has(table) {
            self.tables.push((table, keys));
        }
    }

    pub fn insert(&mut self, table: TableId, key: &[u8], slot: Slot) {
        if let Some(keys) = self.of_mut(table) {
            keys.insert(key.into(), slot);
        }
    }

    pub fn remove(&mut self, table: TableId, key: &[u8]) {
        if let Some(keys) = self.of_mut(table) {
            keys.remove(key);
        }
    }

    /// Rows from `start` on and before `end`, or from before `end` down to `start`; `after` leaves out
    /// what lies before it in that direction, itself included.
    pub fn range(
        &self,
        table: TableId,
        (start, end): (&[u8], Option<&[u8]>),
        direction: Direction,
        after: Option<&[u8]>,
    ) -> Vec<Slot> {
        let mut low = Bound::Included(start);
        let mut high = end.map_or(Bound::Unbounded, Bound::Excluded);
        match (direction, after) {
            (Direction::Forward, Some(after)) if after >= start => low = Bound::Excluded(after),
            (Direction::Backward, Some(after)) if end.is_none_or(|end| after < end) => {
                high = Bound::Excluded(after);
            }
            _ => {}
        }
        let (Some(keys), false) = (self.of(table), is_empty(low, high)) else {
            return Vec::new();
        };
        let range = keys.range::<[u8], _>((low, high)).map(|(_, &slot)| slot);
        match direction {
            Direction::Forward => range.take(Self::CHUNK).collect(),
            Direction::Backward => range.rev().take(Self::CHUNK).collect(),
        }
    }

    fn of(&self, table: TableId) -> Option<&Keys> {
        let found = self.tables.iter().find(|(id, _)| *id == table);
        found.map(|(_, keys)| keys)
    }

    fn of_mut(&mut self, table: TableId) -> Option<&mut Keys> {
        let found = self.tables.iter_mut().find(|(id, _)| *id == table);
        found.map(|(_, keys)| keys)
    }
}

/// `BTreeMap::range` panics where the bounds cross.
fn is_empty(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Excluded(high)) => low >= high,
        _ => false,
    }
}
