//! Why a writer of Parquet files refuses a layout, an option or a batch.

use std::io;

use super::options::{Compression, Encoding};
use crate::columns::BatchError;

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output failed, so what was written is not a Parquet file.
    #[error("cannot write a Parquet file: {0}")]
    Io(#[from] io::Error),
    /// The columns are not a batch of rows of this layout.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// An option names a column that the layout does not have.
    #[error("there is no column {given}; the columns are {known}")]
    UnknownColumn {
        /// The name that the option has.
        given: String,
        /// The names of all columns, separated by commas.
        known: String,
    },
    /// An option is neither a codec nor an encoding.
    #[error(
        "{given:?} is not a compression or encoding: compressions are snappy, zstd, zstd:LEVEL, \
         lz4_raw and none, encodings are auto, plain, dictionary, delta and prefix"
    )]
    UnknownOption {
        /// The text that was given.
        given: String,
    },
    /// An option sets the same thing twice for one column.
    #[error("{given:?} says {what} twice")]
    GivenTwice {
        /// The text that was given.
        given: String,
        /// "the compression" or "the encoding".
        what: &'static str,
    },
    /// The level is not one that zstd has.
    #[error("zstd has levels from 1 to 22, not {given}")]
    Level {
        /// The level that was given.
        given: String,
    },
    /// The column's type cannot be written in this encoding.
    #[error("column {column} cannot be encoded as {encoding}: only text can")]
    Encoding {
        /// Name of the column with the option.
        column: &'static str,
        /// The encoding that the option requests.
        encoding: Encoding,
    },
    /// A decimal that 64 bits cannot hold, or with more digits behind the point than in all.
    #[error("column {column}: decimal({precision},{scale}) does not have 1 to 18 digits")]
    Precision {
        /// Name of the column of decimals.
        column: &'static str,
        /// How many digits it has in all.
        precision: u8,
        /// How many of these stand behind the point.
        scale: u8,
    },
    /// The type of the column cannot hold a value.
    #[error("column {column}: its type cannot hold {value}")]
    OutOfRange {
        /// Name of the column.
        column: &'static str,
        /// The value.
        value: String,
    },
    /// The options request a dictionary, and it has grown too large. Another encoding suits the
    /// column better.
    #[error(
        "column {column}: a dictionary was asked for, but after {rows} rows of a row group it would have \
         more than {limit_bytes} bytes"
    )]
    DictionaryTooLarge {
        /// Name of the column with the dictionary.
        column: &'static str,
        /// Rows of the row group when the limit was passed.
        rows: usize,
        /// Bytes that a dictionary may have.
        limit_bytes: usize,
    },
    /// A code has no entry in its dictionary, which is a bug of the caller.
    #[error("column {column}: code {code} is not one of the {entries} entries of its dictionary")]
    Code {
        /// Name of the column with the code.
        column: &'static str,
        /// The first or largest code without an entry.
        code: u32,
        /// How many entries the dictionary has.
        entries: usize,
    },
    /// Two batches of a row group have different dictionaries, which is a bug of the caller.
    #[error("column {column}: the dictionary is not that of the batch before")]
    OtherDictionary {
        /// Name of the column with the dictionaries.
        column: &'static str,
    },
    /// The rows are not in the order that the layout declares.
    #[error(
        "the rows are not sorted by {columns}: row {row} of a row group comes before row {previous}"
    )]
    NotSorted {
        /// The columns of the order.
        columns: String,
        /// The row, counted from 0.
        row: usize,
        /// The row that stands in front of it.
        previous: usize,
    },
    /// A page would have more bytes than the format's 31 bits can count.
    #[error("column {column}: a page would have {bytes} bytes, and Parquet counts to 2147483647")]
    PageTooLarge {
        /// Name of the column with the page.
        column: &'static str,
        /// How many bytes the page would have.
        bytes: usize,
    },
    /// The codec refused a page or could not be set up.
    #[error("cannot compress by {codec}: {reason}")]
    Compression {
        /// The codec with its level.
        codec: Compression,
        /// What the codec's library said.
        reason: String,
    },
}

/// The result of every call in this module that can fail.
pub type Result<T> = std::result::Result<T, Error>;
