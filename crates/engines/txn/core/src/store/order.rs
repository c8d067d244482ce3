//! The keys of tables in order, for scans.
//!
//! Most rows that a scan asks for are living: their newest version is a value, or they have an
//! intent. Deleted rows are kept in a tree of their own until no snapshot can see them any more. A
//! scan finds those that were deleted after its timestamp there, and passes over all others without
//! a step (`deleted`).

use std::collections::BTreeMap;
use std::ops::Bound;

use dyno_txn_api::{Direction, TableId, Timestamp};

use super::Slot;
use super::deleted::{Deleted, Search};

/// The keys of one table.
#[derive(Debug)]
struct Keys {
    living: BTreeMap<OrderKey, Slot>,
    deleted: Deleted,
}

/// How scans treat a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Its newest version is a value, or it has an intent: every scan looks at it.
    Living,
    /// Its newest version is a deletion at this timestamp. Scans of older snapshots look at it.
    Deleted(Timestamp),
    /// It has neither a version nor an intent, so that no scan sees it.
    Blank,
}

/// The rows that a scan asks for next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range<'a> {
    pub table: TableId,
    pub start: &'a [u8],
    pub end: Option<&'a [u8]>,
    pub direction: Direction,
    /// The last key of the page before. Keys up to it, in the direction of the scan, are left out.
    pub after: Option<&'a [u8]>,
    /// Rows that were deleted at or before this timestamp are left out.
    pub deleted_after: Timestamp,
    /// The most rows to return.
    pub most: usize,
}

/// Bytes of a key that are compared without looking elsewhere: the usual key is not longer.
const FRONT: usize = 24;

/// A key that is ordered by its bytes. An insert spends most of its time comparing keys, so the
/// first bytes are in the tree itself, as numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderKey {
    /// The first bytes, and zeros behind them.
    front: (u128, u64),
    /// How many of them are the key's. Of two keys that differ only in trailing zeros, the shorter
    /// one is first.
    length: u8,
    /// The bytes of a longer key behind those of `front`.
    rest: Box<[u8]>,
}

impl OrderKey {
    pub fn new(key: &[u8]) -> Self {
        let (front, rest) = key.split_at(key.len().min(FRONT));
        let mut bytes = [0; 32];
        bytes[..front.len()].copy_from_slice(front);
        let ([first, second], _) = bytes.as_chunks::<16>() else {
            unreachable!("they are two")
        };
        Self {
            front: (
                u128::from_be_bytes(*first),
                (u128::from_be_bytes(*second) >> 64) as u64,
            ),
            length: front.len() as u8,
            rest: rest.into(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Order {
    tables: Vec<(TableId, Keys)>,
    /// The seed of the priorities that balance the trees of deleted rows.
    seed: u64,
}

impl Order {
    /// The most rows that one call of [`Order::range`] is asked for. A longer scan goes on from the
    /// last one.
    pub const CHUNK: usize = 64;

    pub fn new(seed: u64) -> Self {
        let tables = Vec::new();
        Self { tables, seed }
    }

    pub fn has(&self, table: TableId) -> bool {
        self.keys(table).is_some()
    }

    /// Keeps this table in order from now on, beginning with these rows.
    pub fn build<'a>(
        &mut self,
        table: TableId,
        rows: impl Iterator<Item = (&'a [u8], Slot, Visibility)>,
    ) {
        if self.has(table) {
            return;
        }
        let (mut living, mut deleted) = (Vec::new(), Deleted::new());
        for (key, slot, visibility) in rows {
            let key = OrderKey::new(key);
            match visibility {
                Visibility::Living => living.push((key, slot)),
                Visibility::Deleted(timestamp) => deleted.insert(key, slot, timestamp, self.seed),
                Visibility::Blank => {}
            }
        }
        // Collecting sorts the rows once, instead of searching the tree for each of them.
        let living = living.into_iter().collect();
        self.tables.push((table, Keys { living, deleted }));
    }

    /// Moves a row whose visibility has changed.
    pub fn change(
        &mut self,
        table: TableId,
        key: &[u8],
        slot: Slot,
        (old, new): (Visibility, Visibility),
    ) {
        let seed = self.seed;
        let Some(keys) = self.keys_mut(table) else {
            return;
        };
        let key = OrderKey::new(key);
        match old {
            Visibility::Living => drop(keys.living.remove(&key)),
            Visibility::Deleted(_) => keys.deleted.remove(&key),
            Visibility::Blank => {}
        }
        match new {
            Visibility::Living => drop(keys.living.insert(key, slot)),
            Visibility::Deleted(timestamp) => keys.deleted.insert(key, slot, timestamp, seed),
            Visibility::Blank => {}
        }
    }

    /// The next rows of a scan in its direction. If they are fewer than it asks for, there are no
    /// more.
    pub fn range(&self, range: &Range<'_>) -> Vec<Slot> {
        let (start, end) = (range.start, range.end);
        let mut low = Bound::Included(start);
        let mut high = end.map_or(Bound::Unbounded, Bound::Excluded);
        match (range.direction, range.after) {
            (Direction::Forward, Some(after)) if after >= start => low = Bound::Excluded(after),
            (Direction::Backward, Some(after)) if end.is_none_or(|end| after < end) => {
                high = Bound::Excluded(after);
            }
            _ => {}
        }
        let (Some(keys), false) = (self.keys(range.table), is_empty(low, high)) else {
            return Vec::new();
        };
        let bounds = (low.map(OrderKey::new), high.map(OrderKey::new));
        let mut search = Search {
            bounds: bounds.clone(),
            direction: range.direction,
            after: range.deleted_after,
            most: range.most,
            found: Vec::new(),
            visited: 0,
        };
        // The deleted rows are searched first, up to as many as are asked for. Together with as
        // many living ones that is always enough, whichever of both come first.
        keys.deleted.search(&mut search);
        let living = keys.living.range(bounds);
        match range.direction {
            Direction::Forward => merge(living, search.found, range.most, |a, b| a < b),
            Direction::Backward => merge(living.rev(), search.found, range.most, |a, b| a > b),
        }
    }

    fn keys(&self, table: TableId) -> Option<&Keys> {
        let found = self.tables.iter().find(|(id, _)| *id == table);
        found.map(|(_, keys)| keys)
    }

    fn keys_mut(&mut self, table: TableId) -> Option<&mut Keys> {
        let found = self.tables.iter_mut().find(|(id, _)| *id == table);
        found.map(|(_, keys)| keys)
    }
}

/// The first `most` rows of both lists, each of which is in the order that `before` says.
fn merge<'a>(
    mut living: impl Iterator<Item = (&'a OrderKey, &'a Slot)>,
    deleted: Vec<(&'a OrderKey, Slot)>,
    most: usize,
    before: impl Fn(&OrderKey, &OrderKey) -> bool,
) -> Vec<Slot> {
    if deleted.is_empty() {
        // The usual case.
        return living.take(most).map(|(_, slot)| *slot).collect();
    }
    let mut deleted = deleted.into_iter().peekable();
    let mut next = living.next();
    let mut slots = Vec::with_capacity(most);
    while slots.len() < most {
        match (next, deleted.peek()) {
            (Some((key, _)), Some((other, slot))) if before(other, key) => {
                slots.push(*slot);
                deleted.next();
            }
            (Some((_, slot)), _) => {
                slots.push(*slot);
                next = living.next();
            }
            (None, Some((_, slot))) => {
                slots.push(*slot);
                deleted.next();
            }
            (None, None) => break,
        }
    }
    slots
}

/// Whether no key is within the bounds, for which `BTreeMap::range` would panic.
fn is_empty(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Excluded(high)) => low >= high,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Keys about as long as the front, of few different bytes, zeros among them.
    fn awkward() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0, 1, 0xff]), 0..4).prop_flat_map(|end| {
            let front = prop::sample::select(vec![0, FRONT - 2, FRONT - 1, FRONT, FRONT + 2]);
            front.prop_map(move |zeros| [vec![0; zeros], end.clone()].concat())
        })
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_their_bytes(a in awkward(), b in awkward()) {
            prop_assert_eq!(OrderKey::new(&a).cmp(&OrderKey::new(&b)), a.cmp(&b));
        }
    }
}
