//! Keys of tables in order.

use std::collections::BTreeMap;
use std::ops::Bound;

use dyno_txn_api::{Direction, TableId};

use super::Slot;

type Keys = BTreeMap<OrderKey, Slot>;

/// Bytes of a key that are compared without looking elsewhere: the usual key is not longer.
const FRONT: usize = 24;

/// A key in the order of its bytes. Most of the time of an insert is comparing, so the first bytes lie in the tree itself, as
/// numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OrderKey {
    /// The first bytes, and zeros behind them.
    front: (u128, u64),
    /// How many of those are the key's: of two keys that differ only in zeros the shorter one is first.
    length: u8,
    /// The bytes behind them.
    rest: Box<[u8]>,
}

impl OrderKey {
    fn new(key: &[u8]) -> Self {
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
        let keys = rows
            .into_iter()
            .map(|(key, slot)| (OrderKey::new(key), slot));
        let keys: Keys = keys.collect();
        if !self.has(table) {
            self.tables.push((table, keys));
        }
    }

    pub fn insert(&mut self, table: TableId, key: &[u8], slot: Slot) {
        if let Some(keys) = self.of_mut(table) {
            keys.insert(OrderKey::new(key), slot);
        }
    }

    pub fn remove(&mut self, table: TableId, key: &[u8]) {
        if let Some(keys) = self.of_mut(table) {
            keys.remove(&OrderKey::new(key));
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
        let bounds = (low.map(OrderKey::new), high.map(OrderKey::new));
        let range = keys.range(bounds).map(|(_, &slot)| slot);
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
