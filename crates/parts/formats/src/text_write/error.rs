use std::io;

use crate::columns::BatchError;

/// What a writer of text says.
pub type Result<T> = std::result::Result<T, TextError>;

/// Why rows could not become text.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A file without columns has no lines.
    #[error("a text file needs at least one column")]
    NoColumns,
    /// The separator could be part of a number or of a quoted value, or is not one byte of ASCII.
    #[error("separator {given:?} cannot stand between values: {reason}")]
    Separator {
        /// The separator.
        given: char,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Decimals have at most 18 digits, and no more behind the point than they have.
    #[error("column {name}: decimal({precision}, {scale}) cannot be printed: {reason}")]
    Decimal {
        /// The column.
        name: &'static str,
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An option for columns of another kind.
    #[error("column {name}: {option} is for {wanted}, not for {kind}")]
    Style {
        /// The column.
        name: &'static str,
        /// The option.
        option: &'static str,
        /// What it is for.
        wanted: &'static str,
        /// What the column is.
        kind: String,
    },
    /// Not rows of this file.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A code without a word.
    #[error("column {name}: code {code} has no entry in a dictionary of {entries}")]
    Code {
        /// The column.
        name: &'static str,
        /// The largest code.
        code: u32,
        /// Entries of the dictionary.
        entries: usize,
    },
    /// A value that a reader would take for two, in a dialect that has no quotes.
    #[error(
        "column {name}, row {row} of the block: {byte:?} in a value, and this dialect has no quotes"
    )]
    Unquotable {
        /// The column.
        name: &'static str,
        /// The row, counted from 0.
        row: u64,
        /// The separator or line end.
        byte: char,
    },
    /// The output refused the bytes.
    #[error("cannot write text: {0}")]
    Io(#[from] io::Error),
}
