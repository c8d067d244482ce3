//! A partition of the groups, with the rows that wait for it.

use dyno_formats::parquet_read::BLOCK_ROWS;

use crate::index::Index;
use crate::layout::Layout;
use crate::totals::{Totals, Values};

/// How many groups are taken over at a time.
const BATCH: usize = 1024;
/// The least number of rows for which a partition's memory is worth fetching.
const WAITING_LEAST: usize = 4096;

/// Groups by packed combinations of keys.
#[derive(Debug)]
pub(crate) struct Partition {
    /// The groups of combinations that are not indexes of an array.
    index: Index,
    pub(crate) totals: Totals,
    /// Rows that wait to be added, each as its combination with its values behind it.
    waiting: Vec<u64>,
}

/// Rows on their way from [`Partition::wait`] into the groups, column by column.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    keys: Vec<u64>,
    values: Vec<Vec<i64>>,
    numbers: Vec<u32>,
}

impl Partition {
    pub(crate) fn new(layout: &Layout, totals: Totals) -> Self {
        let mut part = Self {
            index: Index::default(),
            totals,
            waiting: Vec::new(),
        };
        part.make_room(layout);
        part
    }

    /// Makes room for all combinations, if they are indexes of an array.
    pub(crate) fn make_room(&mut self, layout: &Layout) {
        if layout.is_dense() {
            self.totals.resize(layout.dense_len());
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let totals = self.totals.bytes(self.totals.len());
        self.index.heap_bytes() + totals + self.waiting.capacity() * 8
    }

    /// How many groups have numbers in the order of their appearance. 0 in a dense layout.
    pub(crate) fn numbered(&self) -> usize {
        self.index.len()
    }

    /// Fills `numbers` with the groups of packed combinations, which are made where they are new.
    pub(crate) fn numbers(&mut self, layout: &Layout, keys: &[u64], numbers: &mut [u32]) {
        if layout.is_dense() {
            for (number, key) in numbers.iter_mut().zip(keys) {
                *number = *key as u32;
            }
            return;
        }
        self.index.numbers(keys, numbers);
        if self.index.len() > self.totals.len() {
            // By powers of two, so that most new groups find room already.
            self.totals.resize(self.index.len().next_power_of_two());
        }
    }

    /// Queues a row, and returns whether [`Partition::add_waiting`] is due. It is when as many rows
    /// wait as there are groups, so that a cache line of the groups' memory, once fetched, serves
    /// several rows.
    #[inline]
    pub(crate) fn wait(&mut self, row: &[u64]) -> bool {
        self.waiting.extend_from_slice(row);
        self.waiting.len() >= self.index.len().max(WAITING_LEAST) * row.len()
    }

    /// Adds all rows that wait to their groups.
    pub(crate) fn add_waiting(&mut self, layout: &Layout, scratch: &mut Scratch) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let width = 1 + self.totals.columns();
        scratch.values.resize(width - 1, Vec::new());
        for rows in waiting.chunks(BLOCK_ROWS * width) {
            let rows = rows.chunks_exact(width);
            scratch.keys.clear();
            scratch.keys.extend(rows.clone().map(|row| row[0]));
            for (at, column) in (1..).zip(&mut scratch.values) {
                column.clear();
                column.extend(rows.clone().map(|row| row[at] as i64));
            }
            scratch.numbers.resize(scratch.keys.len(), 0);
            self.numbers(layout, &scratch.keys, &mut scratch.numbers);
            let columns = scratch.values.iter().map(|column| Values::Each(column));
            let columns: Vec<Values<'_>> = columns.collect();
            self.totals.add(&scratch.numbers, &columns);
        }
        waiting.clear();
        self.waiting = waiting;
    }

    /// Adds the rows that wait, and frees their memory. No more may come after that.
    pub(crate) fn finish(&mut self, layout: &Layout, scratch: &mut Scratch) {
        self.add_waiting(layout, scratch);
        self.waiting = Vec::new();
    }

    /// The packed combination of a group.
    pub(crate) fn key(&self, layout: &Layout, group: usize) -> u64 {
        if layout.is_dense() {
            group as u64
        } else {
            self.index.keys()[group]
        }
    }

    /// How many groups rows may have fallen into.
    pub(crate) fn places(&self, layout: &Layout) -> usize {
        if layout.is_dense() {
            self.totals.len()
        } else {
            self.index.len()
        }
    }

    /// The numbers of the groups that rows fell into.
    pub(crate) fn held(&self, layout: &Layout) -> impl Iterator<Item = usize> {
        (0..self.places(layout)).filter(|number| self.totals.holds(*number))
    }

    /// Moves the groups to another layout. No row may wait.
    pub(crate) fn lay_out(&mut self, from: &Layout, to: &Layout) {
        let fresh = Self::new(to, self.totals.fresh());
        let old = std::mem::replace(self, fresh);
        let narrow = self.totals.is_narrow();
        let key = |group| to.pack(from.unpack(old.key(from, group)));
        let groups = old.held(from).map(|group| (group, key(group)));
        self.add_groups(to, &old.totals, groups);
        if narrow && !self.totals.is_narrow() {
            self.totals.narrow_again();
        }
    }

    /// Adds groups of other totals. Each is given with the combination that it has here.
    pub(crate) fn add_groups(
        &mut self,
        layout: &Layout,
        other: &Totals,
        groups: impl Iterator<Item = (usize, u64)>,
    ) {
        // Decided for all groups at once. Slots are added as they are only if no slot here can
        // overflow by it, and otherwise through wide results.
        let slots = self.totals.takes_slots(other);
        if !slots {
            self.totals.widen();
        }
        let mut groups = groups.peekable();
        let (mut from, mut keys, mut numbers) = (Vec::new(), Vec::new(), vec![0; BATCH]);
        while groups.peek().is_some() {
            from.clear();
            keys.clear();
            for (group, key) in groups.by_ref().take(BATCH) {
                from.push(group);
                keys.push(key);
            }
            self.numbers(layout, &keys, &mut numbers[..from.len()]);
            for (from, to) in from.iter().zip(&numbers) {
                if slots {
                    self.totals.take_slot(*to as usize, other, *from);
                } else {
                    self.totals.add_group(*to as usize, other, *from);
                }
            }
        }
        if slots {
            self.totals.took_slots(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ValueColumn;

    #[test]
    fn groups_that_slots_cannot_hold_together_become_wide() {
        const ROWS: usize = 6_000_000;
        let layout = Layout::empty(1, 0).for_sizes(&[3]).unwrap();
        let value = ValueColumn {
            column: 0,
            sum: true,
            least: false,
            most: false,
        };
        for (rows, narrow) in [(ROWS / 2, true), (ROWS, false)] {
            let partition = || {
                let mut partition = Partition::new(&layout, Totals::new(&[value], &[false], true));
                partition.totals.add_same(1, rows, &[7]);
                partition.totals.add_same(2, 1, &[-3]);
                partition
            };
            let (mut all, other) = (partition(), partition());
            all.add_groups(&layout, &other.totals, [(1, 1), (2, 0)].into_iter());
            assert_eq!(all.totals.is_narrow(), narrow);
            let found = [0, 1, 2].map(|group| (all.totals.count(group), all.totals.sum(0, group)));
            assert_eq!(found, [(1, -3), (2 * rows as u64, 14), (1, -3)]);
        }
    }
}
