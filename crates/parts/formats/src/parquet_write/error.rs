//! What can go wrong while a table is written.

use std::io;

use super::options::{Compression, Encoding};
use crate::columns::BatchError;

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output refused; what was written is not a Parquet file.
    #[error("cannot write a Parquet file: {0}")]
    Io(#[from] io::Error),
    /// The batch does not fit the layout.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// An option names a column that is not there.
    #[error("there is no column {given}; the columns are {known}")]
    UnknownColumn {
        /// The name in the options.
        given: String,
        /// The names that there are.
        known: String,
    },
    /// A word that is neither a codec nor an encoding.
    #[error(
        "{given:?} is not a compression or encoding: compressions are none, snappy, zstd, zstd:LEVEL and \
         lz4_raw, encodings auto, plain, dictionary, delta and prefix"
    )]
    UnknownOption {
        /// The word.
        given: String,
    },
    /// The same thing said twice for one column.
    #[error("{given:?} says {what} twice")]
    SaidTwice {
        /// The option.
        given: String,
        /// "the compression" or "the encoding".
        what: &'static str,
    },
    /// A level that zstd does not have.
    #[error("zstd has levels from 1 to 22, not {given}")]
    Level {
        /// The level asked for.
        given: String,
    },
    /// An encoding that the column's type does not have.
    #[error("column {column} cannot be encoded as {encoding}: only text can")]
    Encoding {
        /// The column.
        column: &'static str,
        /// What was asked for.
        encoding: Encoding,
    },
    /// A decimal that 64 bits cannot hold, or with more digits behind the point than in all.
    #[error("column {column}: decimal({precision},{scale}) does not have 1 to 18 digits")]
    Precision {
        /// The column.
        column: &'static str,
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// A dictionary was asked for and grows without end: choose another encoding for the column.
    #[error(
        "column {column}: a dictionary was asked for, but after {rows} rows of a row group it would have \
         more than {limit_bytes} bytes"
    )]
    DictionaryTooLarge {
        /// The column.
        column: &'static str,
        /// Rows of the row group at the end of the batch.
        rows: usize,
        /// Bytes that a dictionary may have.
        limit_bytes: usize,
    },
    /// A code without a value: a bug of the caller.
    #[error("column {column}: code {code} is not one of the {entries} places in its dictionary")]
    Code {
        /// The column.
        column: &'static str,
        /// The code.
        code: u32,
        /// Entries of the dictionary.
        entries: usize,
    },
    /// Two batches of a row group have different dictionaries: a bug of the caller.
    #[error("column {column}: the dictionary is not that of the batch before")]
    OtherDictionary {
        /// The column.
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
        /// The one before it.
        previous: usize,
    },
    /// A value or page that the format's 31 bits cannot count.
    #[error("column {column}: a page would have {bytes} bytes, and Parquet counts to 2147483647")]
    PageTooLarge {
        /// The column.
        column: &'static str,
        /// Bytes of the page.
        bytes: usize,
    },
    /// A codec failed.
    #[error("cannot compress by {codec}: {reason}")]
    Compression {
        /// The codec.
        codec: Compression,
        /// What it says.
        reason: String,
    },
}

/// What a writer of tables gives back.
pub type Result<T> = std::result::Result<T, Error>;
