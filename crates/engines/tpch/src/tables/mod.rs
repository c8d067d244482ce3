//! The columns of each table and how they are drawn, with one file for each table.

pub(crate) mod comments;
pub(crate) mod customer;
pub(crate) mod lineitem;
pub(crate) mod lines;
pub(crate) mod nation;
pub(crate) mod orders;
pub(crate) mod part;
pub(crate) mod partsupp;
pub(crate) mod party;
pub(crate) mod region;
pub(crate) mod strings;
pub(crate) mod supplier;

/// Makes room for `len` values. What is in them already stays until the caller overwrites it,
/// because clearing it would cost as much as filling it.
pub(crate) fn room<T: Copy + Default>(values: &mut Vec<T>, len: usize) -> &mut [T] {
    if values.len() < len {
        values.resize(len, T::default());
    }
    &mut values[..len]
}

/// Fills in keys that count up from 1, for units that count from 0.
pub(crate) fn count_up(keys: &mut Vec<i64>, first: u64, len: usize) {
    for (key, number) in room(keys, len).iter_mut().zip(first + 1..) {
        *key = number as i64;
    }
}
