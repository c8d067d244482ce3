//! Columns as an engine holds them: the input of every writer here.
//!
//! A [`Field`] says what a column is, [`Values`] are those of one batch of rows, in the shortest
//! form that the engine has: integers, codes into a dictionary, slices of text that lie elsewhere.
//! There are no nulls: all columns are required.

mod gather;
mod words;

pub(crate) use gather::gather;
pub use words::Words;

/// A column: its name and what its values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// What the values are.
    pub kind: Kind,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// Days since 1970-01-01.
    Date,
    /// Integers of 64 bits that count units of 10^-`scale`.
    Decimal {
        /// Digits in all, at most 18.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// UTF-8 of any length.
    Text,
    /// UTF-8 of at most so many characters that a format may call fixed. Values are not padded.
    Char(u32),
    /// UTF-8 of at most so many characters.
    Varchar(u32),
}

/// The values of one column in a batch of rows.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// For [`Kind::Int64`] and [`Kind::Decimal`].
    Int64(&'a [i64]),
    /// For [`Kind::Int32`] and [`Kind::Date`].
    Int32(&'a [i32]),
    /// For [`Kind::Int64`] and [`Kind::Decimal`]: each value as its place in a dictionary.
    CodedInt64 {
        /// Places in `values`.
        codes: Codes<'a>,
        /// What may occur, at most once each; the same slice in every batch of a column.
        values: &'a [i64],
    },
    /// For text: each value as its place in a dictionary.
    CodedText {
        /// Places in `words`.
        codes: Codes<'a>,
        /// What may occur; the same in every batch of a column.
        words: &'a Words,
    },
    /// For text: one value after the other.
    Text {
        /// Where each value begins in `bytes`, and where the last one ends: one more than there are
        /// rows.
        offsets: &'a [u32],
        /// The bytes of the values.
        bytes: &'a [u8],
    },
    /// For text that lies scattered: its bytes are copied once, to where the writer wants them.
    Slices(&'a dyn Slices),
}

/// Places in a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codes<'a> {
    /// Of at most 256 entries.
    U8(&'a [u8]),
    /// Of any number.
    U32(&'a [u32]),
}

/// Short pieces of text that lie scattered.
pub trait Slices {
    /// The bytes of each.
    fn lengths(&self) -> &[u8];

    /// Their sum.
    fn total_bytes(&self) -> usize;

    /// Bytes behind the last one that [`Slices::copy_to`] may spoil, since it copies in wide moves.
    fn padding_bytes(&self) -> usize;

    /// Copies all of them to the front of `out`, one after the other, and returns their bytes.
    ///
    /// # Panics
    /// When `out` is shorter than [`Slices::total_bytes`] and [`Slices::padding_bytes`] together.
    fn copy_to(&self, out: &mut [u8]) -> usize;
}

impl Codes<'_> {
    /// The code of a row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize) -> usize {
        match self {
            Codes::U8(codes) => usize::from(codes[row]),
            Codes::U32(codes) => codes[row] as usize,
        }
    }

    /// The largest one, if there is any.
    pub fn max(&self) -> Option<u32> {
        match self {
            Codes::U8(codes) => codes.iter().copied().max().map(u32::from),
            Codes::U32(codes) => codes.iter().copied().max(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Codes::U8(codes) => codes.len(),
            Codes::U32(codes) => codes.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Values<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Values::Int64(values) => values.len(),
            Values::Int32(values) => values.len(),
            Values::CodedInt64 { codes, .. } | Values::CodedText { codes, .. } => codes.len(),
            Values::Text { offsets, .. } => offsets.len().saturating_sub(1),
            Values::Slices(slices) => slices.lengths().len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they can be values of a column of this kind.
    pub fn fit(&self, kind: Kind) -> bool {
        match self {
            Values::Int64(_) | Values::CodedInt64 { .. } => {
                matches!(kind, Kind::Int64 | Kind::Decimal { .. })
            }
            Values::Int32(_) => matches!(kind, Kind::Int32 | Kind::Date),
            Values::CodedText { .. } | Values::Text { .. } | Values::Slices(_) => {
                matches!(kind, Kind::Text | Kind::Char(_) | Kind::Varchar(_))
            }
        }
    }
}

/// A batch that is not one: what a writer says to a caller who mixes columns up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Not one value list for each field.
    #[error("{given} columns given for {expected} fields")]
    Columns {
        /// Fields of the file.
        expected: usize,
        /// Lists given.
        given: usize,
    },
    /// Columns of different lengths.
    #[error("column {name} has {given} values, the first one {expected}")]
    Length {
        /// The column.
        name: &'static str,
        /// Values of the first column.
        expected: usize,
        /// Values of this one.
        given: usize,
    },
    /// Values of another kind.
    #[error("the values given for column {name} cannot be {kind:?}")]
    Kind {
        /// The column.
        name: &'static str,
        /// What they should be.
        kind: Kind,
    },
}

/// Checks that `columns` are a batch of rows of `fields`, and says how many rows.
///
/// # Errors
/// See [`BatchError`].
pub fn check_batch(fields: &[Field], columns: &[Values<'_>]) -> Result<usize, BatchError> {
    if fields.len() != columns.len() {
        return Err(BatchError::Columns {
            expected: fields.len(),
            given: columns.len(),
        });
    }
    let rows = columns.first().map_or(0, Values::len);
    for (field, values) in fields.iter().zip(columns) {
        if values.len() != rows {
            return Err(BatchError::Length {
                name: field.name,
                expected: rows,
                given: values.len(),
            });
        }
        if !values.fit(field.kind) {
            return Err(BatchError::Kind {
                name: field.name,
                kind: field.kind,
            });
        }
    }
    Ok(rows)
}
