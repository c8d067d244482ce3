//! Columns as an engine holds them: the input of every writer here.
//!
//! A [`Field`] says what a column is. [`Values`] holds one batch of rows of it in the shortest form
//! that the engine has: integers, codes into a dictionary, or slices of text that lie elsewhere.
//! There are no nulls, because all columns are required.

mod gather;
mod words;

pub(crate) use gather::gather;
pub use words::Words;

/// A column's name and the kind of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Written into the schema or the header line as it stands here.
    pub name: &'static str,
    /// Decides the column's type in the file and which [`Values`] fit it.
    pub kind: Kind,
}

/// The type of a column, from which each format chooses its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signed integers of 32 bits.
    Int32,
    /// Signed integers of 64 bits.
    Int64,
    /// Days since 1970-01-01, negative before that day.
    Date,
    /// Integers of 64 bits that count units of 10^-`scale`.
    Decimal {
        /// Digits in all, at most 18.
        precision: u8,
        /// How many of these stand behind the point.
        scale: u8,
    },
    /// UTF-8 of any length, which may be 0.
    Text,
    /// UTF-8 of at most so many characters that a format may call fixed. Values are not padded.
    Char(u32),
    /// UTF-8 of at most so many characters.
    Varchar(u32),
}

/// The values of one column in a batch of rows.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// One integer for each row of a [`Kind::Int64`] or [`Kind::Decimal`] column.
    Int64(&'a [i64]),
    /// One integer for each row of a [`Kind::Int32`] or [`Kind::Date`] column.
    Int32(&'a [i32]),
    /// For [`Kind::Int64`] and [`Kind::Decimal`]: each value as its place in a dictionary.
    CodedInt64 {
        /// An index into `values` for each row.
        codes: Codes<'a>,
        /// The dictionary, without duplicates. It must be the same in every batch of a column.
        values: &'a [i64],
    },
    /// For text: each value as its place in a dictionary.
    CodedText {
        /// The index of an entry of `words` for each row.
        codes: Codes<'a>,
        /// The dictionary. It must be the same in every batch of a column.
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

/// For each row the index of its value in a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codes<'a> {
    /// For a dictionary of at most 256 entries.
    U8(&'a [u8]),
    /// For a dictionary of any size.
    U32(&'a [u32]),
}

/// Short pieces of text that lie scattered.
pub trait Slices {
    /// How many bytes each piece has, in the order of the rows.
    fn lengths(&self) -> &[u8];

    /// The sum of [`Slices::lengths`].
    fn total_bytes(&self) -> usize;

    /// Bytes behind the last piece that [`Slices::copy_to`] may overwrite, because it copies in
    /// wide moves.
    fn padding_bytes(&self) -> usize;

    /// Copies all of them to the front of `out`, one after the other, and returns their bytes.
    ///
    /// # Panics
    /// When `out` is shorter than [`Slices::total_bytes`] and [`Slices::padding_bytes`] together.
    fn copy_to(&self, out: &mut [u8]) -> usize;
}

impl Codes<'_> {
    /// The code of a row, as an index.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize) -> usize {
        match self {
            Codes::U8(codes) => usize::from(codes[row]),
            Codes::U32(codes) => codes[row] as usize,
        }
    }

    /// The largest code, or `None` for a batch without rows.
    pub fn max(&self) -> Option<u32> {
        match self {
            Codes::U8(codes) => codes.iter().copied().max().map(u32::from),
            Codes::U32(codes) => codes.iter().copied().max(),
        }
    }

    /// The number of rows in the batch.
    pub fn len(&self) -> usize {
        match self {
            Codes::U8(codes) => codes.len(),
            Codes::U32(codes) => codes.len(),
        }
    }

    /// Whether the batch has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Values<'_> {
    /// The number of rows in the batch.
    pub fn len(&self) -> usize {
        match self {
            Values::Int64(values) => values.len(),
            Values::Int32(values) => values.len(),
            Values::CodedInt64 { codes, .. } | Values::CodedText { codes, .. } => codes.len(),
            Values::Text { offsets, .. } => offsets.len().saturating_sub(1),
            Values::Slices(slices) => slices.lengths().len(),
        }
    }

    /// Whether the batch has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a column of this kind can hold them.
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

/// Why columns are not a batch of rows of a file. The caller has mixed up its columns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The number of columns is not that of the fields.
    #[error("{given} columns given for {expected} fields")]
    Columns {
        /// The number of fields in the file.
        expected: usize,
        /// The number of columns in the batch.
        given: usize,
    },
    /// Two columns differ in their number of rows.
    #[error("column {name} has {given} values, the first one {expected}")]
    Length {
        /// The first column whose length differs.
        name: &'static str,
        /// The number of rows in the first column.
        expected: usize,
        /// The number of rows in this column.
        given: usize,
    },
    /// The values cannot be those of their column.
    #[error("the values given for column {name} cannot be {kind:?}")]
    Kind {
        /// The first column with such values.
        name: &'static str,
        /// What the file declares the column to be.
        kind: Kind,
    },
}

/// Checks that `columns` are a batch of rows of `fields`, and returns the number of rows. Codes and
/// offsets are not looked at; each writer checks its own.
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
