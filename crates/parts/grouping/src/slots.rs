//! Counts and sums in one machine word for each group: the number of rows in its upper 24 bits, and
//! the sum of their values in the rest.
//!
//! The two additions that `count` and `avg` need become one, in a cache line that the row touches
//! anyway.

use crate::groups::Groups;

const SUM_BITS: u32 = 40;
const ONE_ROW: u64 = 1 << SUM_BITS;
/// The most rows with which neither half of a slot can overflow. A biased value has at most 17
/// bits.
const MAX_ROWS: u64 = 1 << (SUM_BITS - 17);
/// Added to every value, so that sums are never negative and never borrow from the count. It is the
/// size of the least integer of 16 bits.
const BIAS: i64 = 1 << 15;

/// Counts and sums of values of 8 and 16 bits.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    words: Vec<u64>,
    /// A bound that no slot has more rows than.
    rows: u64,
}

impl Slots {
    /// Makes room for codes below `len`. The length stays a power of two.
    pub(crate) fn resize(&mut self, len: usize) {
        self.words
            .resize(len.next_power_of_two().max(self.words.len()), 0);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Whether so many more rows fit, even if all fall into the same slot.
    pub(crate) fn has_room(&mut self, rows: usize) -> bool {
        if self.rows + rows as u64 > MAX_ROWS {
            // The bound counts all rows as if they were in one slot. When it is used up, the
            // fullest slot says how many more really fit.
            let fullest = self.words.iter().map(|word| word >> SUM_BITS).max();
            self.rows = fullest.unwrap_or(0);
        }
        self.rows + rows as u64 <= MAX_ROWS
    }

    /// Adds one row for each code. Codes are below the length given to [`Slots::resize`], values
    /// have at most 16 bits.
    pub(crate) fn add(&mut self, codes: &[u32], values: &[i64]) {
        let words = self.words.as_mut_slice();
        if words.is_empty() {
            return;
        }
        // Because the length is a power of two, the mask changes no code and proves the index in
        // bounds.
        let mask = words.len() - 1;
        for (code, value) in codes.iter().zip(values) {
            let at = *code as usize & mask;
            words[at] = words[at].wrapping_add(ONE_ROW.wrapping_add((value + BIAS) as u64));
        }
        self.rows += codes.len() as u64;
    }

    /// Like [`Slots::add`], for values that are codes themselves. `addends` is what
    /// [`Slots::addends`] has made of their dictionary.
    pub(crate) fn add_coded(&mut self, codes: &[u32], values: &[u32], addends: &[u64]) {
        let words = self.words.as_mut_slice();
        if words.is_empty() || addends.is_empty() {
            return;
        }
        let (mask, value_mask) = (words.len() - 1, addends.len() - 1);
        for (code, value) in codes.iter().zip(values) {
            let at = *code as usize & mask;
            words[at] = words[at].wrapping_add(addends[*value as usize & value_mask]);
        }
        self.rows += codes.len() as u64;
    }

    /// Fills `addends` with what a row with each of these values adds to a slot, up to a power of
    /// two.
    pub(crate) fn addends(values: &[i64], addends: &mut Vec<u64>) {
        addends.clear();
        addends.extend(
            values
                .iter()
                .map(|value| ONE_ROW.wrapping_add((value + BIAS) as u64)),
        );
        addends.resize(values.len().next_power_of_two(), 0);
    }

    /// Adds one row for each code, in a query that reads no values.
    pub(crate) fn add_rows(&mut self, codes: &[u32]) {
        let words = self.words.as_mut_slice();
        if words.is_empty() {
            return;
        }
        let mask = words.len() - 1;
        for code in codes {
            let at = *code as usize & mask;
            words[at] = words[at].wrapping_add(ONE_ROW);
        }
        self.rows += codes.len() as u64;
    }

    /// Adds `rows` rows of one code, whose values have this sum.
    pub(crate) fn add_same(&mut self, code: u32, rows: usize, sum: i64) {
        let biased = sum + BIAS * rows as i64;
        if let Some(word) = self.words.get_mut(code as usize) {
            *word = word.wrapping_add(
                ONE_ROW
                    .wrapping_mul(rows as u64)
                    .wrapping_add(biased as u64),
            );
        }
        self.rows += rows as u64;
    }

    /// The bound that no slot has more rows than.
    pub(crate) fn rows(&self) -> usize {
        self.rows as usize
    }

    /// How many rows a slot has.
    pub(crate) fn count(&self, code: usize) -> u64 {
        self.words.get(code).copied().unwrap_or(0) >> SUM_BITS
    }

    /// The sum of a slot's values. Its rows must have been added with values.
    pub(crate) fn sum(&self, code: usize) -> i64 {
        let word = self.words.get(code).copied().unwrap_or(0);
        (word & (ONE_ROW - 1)) as i64 - BIAS * (word >> SUM_BITS) as i64
    }

    /// Adds slot `from` of `other` to slot `to`. The caller has checked that there is room, and
    /// calls [`Slots::add_bound`] after the last one.
    pub(crate) fn add_slot(&mut self, to: usize, other: &Slots, from: usize) {
        let word = other.words.get(from).copied().unwrap_or(0);
        if let Some(mine) = self.words.get_mut(to) {
            *mine = mine.wrapping_add(word);
        }
    }

    /// Raises the bound, because a slot may have so many more rows.
    pub(crate) fn add_bound(&mut self, rows: usize) {
        self.rows += rows as u64;
    }

    /// Whether rows of this code were added.
    pub(crate) fn holds(&self, code: usize) -> bool {
        self.words.get(code).is_some_and(|word| *word != 0)
    }

    /// Adds what a slot has to group `to`. `valued` says that its rows were added with values, and
    /// so with the bias.
    pub(crate) fn add_to(&self, code: usize, groups: &mut Groups, to: usize, valued: bool) {
        let rows = self.count(code);
        if rows == 0 {
            return;
        }
        groups.counts[to] += rows;
        if valued && let Some(column) = groups.columns.first_mut() {
            column.sums[to] += i128::from(self.sum(code));
        }
    }

    /// Forgets all rows and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.rows = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ValueColumn;

    #[test]
    fn room_is_counted_by_the_fullest_slot() {
        let mut slots = Slots::default();
        slots.resize(1024);
        let codes: Vec<u32> = (0..1024).collect();
        for _ in 0..=MAX_ROWS / 1024 {
            assert!(slots.has_room(codes.len()));
            slots.add(&codes, &[-128; 1024]);
        }
        slots.add_same(3, (MAX_ROWS - 10_000) as usize, 0);
        assert!(!slots.has_room(2000));
    }

    #[test]
    fn the_halves_of_a_slot_do_not_touch_at_the_limit() {
        let value = ValueColumn {
            column: 0,
            sum: true,
            least: false,
            most: false,
        };
        for extreme in [i64::from(i16::MIN), 0, i64::from(u16::MAX)] {
            let mut slots = Slots::default();
            slots.resize(2);
            let mut rows = 0;
            let codes = [1u32; 1023];
            while slots.has_room(codes.len()) {
                slots.add(&codes, &[extreme; 1023]);
                rows += codes.len() as u64;
            }
            let mut groups = Groups::new(&[value], &[false]);
            groups.resize(2);
            slots.add_to(1, &mut groups, 1, true);
            slots.clear();
            assert!(!slots.holds(1));
            assert_eq!(groups.counts, [0, rows]);
            assert_eq!(
                groups.columns[0].sums,
                [0, i128::from(extreme) * i128::from(rows)]
            );
            assert!(slots.has_room(MAX_ROWS as usize));
        }
    }
}
