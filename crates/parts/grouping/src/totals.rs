//! The results of the groups that rows are being added to, in one machine word each where that is
//! enough.

use crate::groups::Groups;
use crate::query::ValueColumn;
use crate::slots::Slots;

/// The values of one column for the rows of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values<'a> {
    /// A value for each row.
    Each(&'a [i64]),
    /// For each row the code of its value, with what [`Slots::addends`] has made of the dictionary.
    Addends(&'a [u32], &'a [u64]),
}

/// Running results, either narrow (in slots) or wide.
#[derive(Debug)]
pub(crate) struct Totals {
    /// Whether rows are added to the slots. What slots could not hold any more is in `wide`.
    narrow: bool,
    valued: bool,
    slots: Slots,
    wide: Groups,
    len: usize,
}

impl Totals {
    /// `narrow` says that there is at most one value column, that it has at most 16 bits, and that
    /// only its sum is wanted. `unsigned` is as for [`Groups::new`].
    pub(crate) fn new(values: &[ValueColumn], unsigned: &[bool], narrow: bool) -> Self {
        Self {
            narrow,
            valued: !values.is_empty(),
            slots: Slots::default(),
            wide: Groups::new(values, unsigned),
            len: 0,
        }
    }

    pub(crate) fn is_narrow(&self) -> bool {
        self.narrow
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many value columns there are.
    pub(crate) fn columns(&self) -> usize {
        self.wide.columns.len()
    }

    /// Makes room for groups below `len`.
    pub(crate) fn resize(&mut self, len: usize) {
        self.len = self.len.max(len);
        if self.narrow {
            self.slots.resize(len);
        } else {
            self.wide.resize(len);
        }
    }

    /// How many bytes `len` groups take.
    pub(crate) fn bytes(&self, len: usize) -> usize {
        let poured = self.wide.counts.len();
        let wide = self.wide.bytes(if self.narrow { poured } else { len });
        self.slots.bytes() + wide
    }

    /// Adds `rows` rows of one group, which have these values. Only for narrow results.
    pub(crate) fn add_same(&mut self, number: u32, rows: usize, values: &[i64]) {
        if !self.slots.has_room(rows) {
            self.pour();
        }
        self.slots.add_same(number, rows, values.iter().sum());
    }

    /// Adds one row for each number. `columns` has one element for each value column.
    pub(crate) fn add(&mut self, numbers: &[u32], columns: &[Values<'_>]) {
        if !self.narrow {
            self.wide.count_rows(numbers);
            for (column, values) in self.wide.columns.iter_mut().zip(columns) {
                if let Values::Each(values) = values {
                    column.add(numbers, values);
                }
            }
            return;
        }
        // Before and not after an overflow, which could not be undone.
        if !self.slots.has_room(numbers.len()) {
            self.pour();
        }
        match columns.first() {
            None => self.slots.add_rows(numbers),
            Some(Values::Each(values)) => self.slots.add(numbers, values),
            Some(Values::Addends(codes, addends)) => {
                self.slots.add_coded(numbers, codes, addends);
            }
        }
    }

    /// Whether rows fell into a group.
    pub(crate) fn holds(&self, number: usize) -> bool {
        self.slots.holds(number) || self.wide.counts.get(number).is_some_and(|count| *count > 0)
    }

    /// Whether [`Totals::take_slot`] may be used for all groups of `other`, without any overflow.
    pub(crate) fn takes_slots(&mut self, other: &Totals) -> bool {
        let both = self.narrow && other.narrow && other.wide.counts.is_empty();
        both && self.slots.has_room(other.slots.rows())
    }

    /// Adds the slot of group `from` of `other` to that of group `to`.
    pub(crate) fn take_slot(&mut self, to: usize, other: &Totals, from: usize) {
        self.slots.add_slot(to, &other.slots, from);
    }

    /// Ends a series of [`Totals::take_slot`] of all groups of `other`.
    pub(crate) fn took_slots(&mut self, other: &Totals) {
        self.slots.add_bound(other.slots.rows());
    }

    /// How many rows a group has.
    pub(crate) fn count(&self, number: usize) -> u64 {
        self.wide.counts.get(number).copied().unwrap_or(0) + self.slots.count(number)
    }

    /// The sum of a value column of which sums are wanted.
    pub(crate) fn sum(&self, column: usize, number: usize) -> i128 {
        let wide = self.wide.columns.get(column);
        let wide = wide.and_then(|column| column.sums.get(number).copied());
        wide.unwrap_or(0) + i128::from(self.slots.sum(number))
    }

    /// Adds group `from` of `other` to group `to`. These totals are wide.
    pub(crate) fn add_group(&mut self, to: usize, other: &Totals, from: usize) {
        if from < other.wide.counts.len() {
            self.wide.add(to, &other.wide, from);
        }
        other.slots.add_to(from, &mut self.wide, to, self.valued);
    }

    /// Changes from slots to wide results, for good or until [`Totals::narrow_again`].
    pub(crate) fn widen(&mut self) {
        if self.narrow {
            self.pour();
            self.narrow = false;
            self.slots = Slots::default();
        }
    }

    /// Adds rows to slots from here on. What is there stays in the wide results.
    pub(crate) fn narrow_again(&mut self) {
        self.narrow = true;
        self.slots.resize(self.len);
    }

    /// Makes totals of the same kind without any group.
    pub(crate) fn fresh(&self) -> Self {
        Self {
            narrow: self.narrow,
            valued: self.valued,
            slots: Slots::default(),
            wide: self.wide.fresh(),
            len: 0,
        }
    }

    /// Forgets the rows of all groups and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.wide.clear();
        if !self.narrow {
            self.wide.resize(self.len);
        }
    }

    pub(crate) fn wide(&self) -> &Groups {
        &self.wide
    }

    /// Empties the slots into the wide results, before they overflow.
    fn pour(&mut self) {
        self.wide.resize(self.len);
        for number in 0..self.len {
            self.slots
                .add_to(number, &mut self.wide, number, self.valued);
        }
        self.slots.clear();
    }
}
