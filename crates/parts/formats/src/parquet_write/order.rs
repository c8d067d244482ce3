//! Checks that rows are in the order that the layout declares, because readers skip by it.

use std::cmp::Ordering;

use super::error::{Error, Result};
use super::flat::{Flat, FlatScratch};
use super::layout::Layout;
use crate::columns::Values;

/// The declared order of rows, ascending by one column or several, and how far it was checked.
pub(super) struct Order {
    columns: Vec<usize>,
    names: String,
    /// The values of the last row so far in these columns, or empty at the beginning of a row
    /// group.
    last: Vec<Key>,
    scratches: Vec<FlatScratch>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Integer(i64),
    Text(Vec<u8>),
}

impl Order {
    pub fn new(layout: &Layout) -> Option<Order> {
        let columns = layout.sorted_by.clone();
        let names: Vec<_> = columns
            .iter()
            .map(|&column| layout.columns[column].field.name)
            .collect();
        (!columns.is_empty()).then(|| Order {
            scratches: columns.iter().map(|_| FlatScratch::default()).collect(),
            names: names.join(", "),
            columns,
            last: Vec::new(),
        })
    }

    pub fn clear(&mut self) {
        self.last.clear();
    }

    /// Checks the next batch, before which the row group has `before` rows. The caller has checked
    /// its codes.
    ///
    /// # Errors
    /// [`Error::NotSorted`].
    pub fn check(&mut self, batch: &[Values<'_>], before: usize) -> Result<()> {
        let scratches = self.columns.iter().zip(&mut self.scratches);
        let values: Vec<Flat<'_>> = scratches
            .map(|(&column, scratch)| scratch.flatten(&batch[column]))
            .collect();
        let Some(last_row) = values.first().and_then(|first| first.len().checked_sub(1)) else {
            return Ok(());
        };
        let key = |row: usize| {
            values
                .iter()
                .map(|values| key(values, row))
                .collect::<Vec<_>>()
        };
        let wrong = if !self.last.is_empty() && key(0) < self.last {
            Some(0)
        } else {
            first_wrong(&values)
        };
        if let Some(row) = wrong {
            return Err(Error::NotSorted {
                columns: self.names.clone(),
                row: before + row,
                previous: before + row - 1,
            });
        }
        self.last = key(last_row);
        Ok(())
    }
}

/// The first row that should stand before the one in front of it.
fn first_wrong(values: &[Flat<'_>]) -> Option<usize> {
    let (first, others) = values.split_first()?;
    let wrong = |row: usize, order: Ordering| match order {
        Ordering::Less => false,
        Ordering::Greater => true,
        Ordering::Equal => others
            .iter()
            .map(|values| compare(values, row - 1, row))
            .find(|order| order.is_ne())
            .is_some_and(Ordering::is_gt),
    };
    match first {
        Flat::Int64(values) => (1..values.len()).find(|&i| wrong(i, values[i - 1].cmp(&values[i]))),
        Flat::Int32(values) => (1..values.len()).find(|&i| wrong(i, values[i - 1].cmp(&values[i]))),
        Flat::Text(_) => (1..first.len()).find(|&i| wrong(i, compare(first, i - 1, i))),
    }
}

fn compare(values: &Flat<'_>, a: usize, b: usize) -> Ordering {
    match values {
        Flat::Int64(values) => values[a].cmp(&values[b]),
        Flat::Int32(values) => values[a].cmp(&values[b]),
        Flat::Text(text) => text.value(a).cmp(text.value(b)),
    }
}

fn key(values: &Flat<'_>, row: usize) -> Key {
    match values {
        Flat::Int64(values) => Key::Integer(values[row]),
        Flat::Int32(values) => Key::Integer(values[row].into()),
        Flat::Text(text) => Key::Text(text.value(row).to_vec()),
    }
}
