//! What is to be computed.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use dyno_formats::parquet_read::StringDictionary;

use crate::BoxError;

/// An aggregation: rows that all filters choose, one group for each combination of keys.
#[derive(Debug, Clone)]
pub struct Query {
    /// Which columns of a file are read; the rest of a query names them by their place here.
    pub columns: Vec<String>,
    /// All of them must choose a row.
    pub filters: Vec<Filter>,
    /// At least one.
    pub keys: Vec<Key>,
    /// Integer columns that are added up or compared.
    pub values: Vec<ValueColumn>,
}

/// A condition on one column.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Place in [`Query::columns`].
    pub column: usize,
    /// The condition.
    pub test: Arc<dyn Test>,
}

/// What rows are grouped by: a column, or a function of one.
#[derive(Debug, Clone)]
pub struct Key {
    /// Place in [`Query::columns`].
    pub column: usize,
    /// The function; none for the column itself.
    pub mapping: Option<Arc<dyn Mapping>>,
}

/// An integer column, and what is wanted of it in each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueColumn {
    /// Place in [`Query::columns`].
    pub column: usize,
    /// Whether its sum is.
    pub sum: bool,
    /// Whether its least value is.
    pub least: bool,
    /// Whether its greatest value is.
    pub most: bool,
}

/// Some values of a column, each once.
#[derive(Debug, Clone, Copy)]
pub enum Inputs<'a> {
    /// Entries `range` of a dictionary, which are bytes that are not checked to be UTF-8.
    Strings(&'a StringDictionary, (usize, usize)),
    /// Integers; those of an unsigned 64-bit column as the same bits.
    Ints(&'a [i64]),
}

impl Inputs<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Strings(_, (start, end)) => end - start,
            Self::Ints(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A function whose results are grouped by.
pub trait Mapping: Debug + Send + Sync {
    /// Appends one result for each input, in order.
    ///
    /// # Errors
    /// Those of the function; they end the scan.
    fn map(&self, inputs: Inputs<'_>, out: &mut Outputs) -> Result<(), BoxError>;
}

/// A condition on a value.
pub trait Test: Debug + Send + Sync {
    /// Appends for each input whether rows with it are chosen, in order.
    ///
    /// # Errors
    /// Those of the condition; they end the scan.
    fn test(&self, inputs: Inputs<'_>, out: &mut Vec<bool>) -> Result<(), BoxError>;
}

/// Results of a [`Mapping`]. Two are the same group when their bytes are.
#[derive(Debug, Default)]
pub struct Outputs {
    bytes: Vec<u8>,
    /// None for NULL.
    spans: Vec<Option<(usize, usize)>>,
}

impl Outputs {
    /// Appends a result, none for NULL.
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.spans.push(value.map(|value| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(value);
            (start, self.bytes.len())
        }));
    }

    /// Appends an integer, as [`crate::Domain::int`] reads it.
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
