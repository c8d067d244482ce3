//! Computes a function of a column once for each entry of a dictionary.

use crate::GroupError;
use crate::column::{Column, Identity, Origin};
use crate::query::Inputs;

/// The results of a function for the codes of a column. Stored and learned codes have a table each,
/// because a column may change between them from block to block.
#[derive(Debug, Default)]
pub(crate) struct Lens<R> {
    stored: Table<R>,
    learned: Table<R>,
}

#[derive(Debug, Default)]
struct Table<R> {
    of: Option<Identity>,
    /// The results by code, filled up to a power of two with defaults.
    results: Vec<R>,
    filled: usize,
}

impl<R: Clone + Default> Lens<R> {
    /// The results for the codes of the column's block. `compute` appends those of entries that are
    /// new. The length is a power of two, and above all codes.
    pub(crate) fn results(
        &mut self,
        column: &Column,
        compute: impl FnOnce(Inputs<'_>, &mut Vec<R>) -> Result<(), GroupError>,
    ) -> Result<&[R], GroupError> {
        let identity = column.identity();
        let table = match identity.0 {
            Origin::Stored => &mut self.stored,
            Origin::Learned => &mut self.learned,
        };
        if table.of != Some(identity) {
            table.of = Some(identity);
            table.filled = 0;
        }
        if table.filled < column.dictionary_len() || table.results.is_empty() {
            // A dictionary that has grown keeps its codes, so only the new entries are computed.
            // After an error `filled` is as before, and they are computed again.
            table.results.truncate(table.filled);
            compute(column.entries(table.filled), &mut table.results)?;
            table.filled = table.results.len();
            table
                .results
                .resize(table.filled.next_power_of_two(), R::default());
        }
        Ok(&table.results)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        (self.stored.results.capacity() + self.learned.results.capacity()) * size_of::<R>()
    }
}
