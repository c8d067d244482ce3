//! What a scan computes: filters, keys, values, and the functions that the caller provides.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use dyno_formats::parquet_read::StringDictionary;

use crate::BoxError;

/// An aggregation over the rows that all filters choose, with one group for each combination of
/// keys.
#[derive(Debug, Clone)]
pub struct Query {
    /// The columns of a file that are read. The rest of a query refers to them by their index here.
    pub columns: Vec<String>,
    /// The conditions, all of which must choose a row.
    pub filters: Vec<Filter>,
    /// What rows are grouped by. There is at least one key.
    pub keys: Vec<Key>,
    /// Integer columns that are summed or compared.
    pub values: Vec<ValueColumn>,
}

/// A condition on one column.
#[derive(Debug, Clone)]
pub struct Filter {
    /// The index of the column in [`Query::columns`].
    pub column: usize,
    /// The condition on its values.
    pub test: Arc<dyn Test>,
}

/// What rows are grouped by: a column, or a function of one.
#[derive(Debug, Clone)]
pub struct Key {
    /// The index of the column in [`Query::columns`].
    pub column: usize,
    /// The function of its values, or `None` to group by the values themselves.
    pub mapping: Option<Arc<dyn Mapping>>,
}

/// An integer column, and what is wanted of it in each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueColumn {
    /// The index of the column in [`Query::columns`].
    pub column: usize,
    /// Whether the sum of its values is wanted.
    pub sum: bool,
    /// Whether its least value is wanted.
    pub least: bool,
    /// Whether its greatest value is wanted.
    pub most: bool,
}

/// Some values of a column, each of them once.
#[derive(Debug, Clone, Copy)]
pub enum Inputs<'a> {
    /// The entries of a dictionary from the first number up to the second one. They are bytes that
    /// are not checked to be UTF-8.
    Strings(&'a StringDictionary, (usize, usize)),
    /// Integers. Those of an unsigned column of 64 bits have the same bits.
    Ints(&'a [i64]),
}

impl Inputs<'_> {
    /// How many values there are, which is how many results are expected.
    pub fn len(&self) -> usize {
        match self {
            Self::Strings(_, (start, end)) => end - start,
            Self::Ints(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A function of a column by whose results rows are grouped. It must return the same result for the
/// same value, because it is not called again for values that were seen.
pub trait Mapping: Debug + Send + Sync {
    /// Appends one result for each input, in their order.
    ///
    /// # Errors
    /// Those of the function, which end the scan.
    fn map(&self, inputs: Inputs<'_>, out: &mut Outputs) -> Result<(), BoxError>;
}

/// A condition on the values of a column. It must have the same answer for the same value, because
/// it is not asked again for values that were seen.
pub trait Test: Debug + Send + Sync {
    /// Appends for each input whether rows with it are chosen, in their order.
    ///
    /// # Errors
    /// Those of the condition, which end the scan.
    fn test(&self, inputs: Inputs<'_>, out: &mut Vec<bool>) -> Result<(), BoxError>;
}

/// Results of a [`Mapping`]. Two are the same group if their bytes are the same.
#[derive(Debug, Default)]
pub struct Outputs {
    bytes: Vec<u8>,
    /// Where each result starts and ends in `bytes`, or `None` for NULL.
    spans: Vec<Option<(usize, usize)>>,
}

impl Outputs {
    /// Appends a result, or NULL for `None`.
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.spans.push(value.map(|value| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(value);
            (start, self.bytes.len())
        }));
    }

    /// Appends an integer as [`crate::Domain::int`] reads it, or NULL for `None`.
    pub fn push_int(&mut self, value: Option<i64>) {
        self.push(
            value
                .map(i64::to_le_bytes)
                .as_ref()
                .map(<[u8; 8]>::as_slice),
        );
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn get(&self, range: Range<usize>) -> impl Iterator<Item = Option<&[u8]>> {
        let spans = self.spans.get(range).unwrap_or_default();
        spans
            .iter()
            .map(|span| span.map(|(start, end)| &self.bytes[start..end]))
    }
}
