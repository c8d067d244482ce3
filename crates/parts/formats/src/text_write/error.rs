use std::io;

use crate::columns::BatchError;

/// The result of every call in this module that can fail.
pub type Result<T> = std::result::Result<T, TextError>;

/// Why rows could not become text.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The layout has no columns, and so there could be no lines.
    #[error("a text file needs at least one column")]
    NoColumns,
    /// The separator could be part of a number or of a quoted value, or is not one byte of ASCII.
    #[error("separator {given:?} cannot stand between values: {reason}")]
    Separator {
        /// The separator of the options.
        given: char,
        /// Why it could not be told from values.
        reason: &'static str,
    },
    /// Decimals have at most 18 digits, and no more behind the point than they have.
    #[error("column {name}: decimal({precision}, {scale}) cannot be printed: {reason}")]
    Decimal {
        /// Name of the column of decimals.
        name: &'static str,
        /// How many digits it has in all.
        precision: u8,
        /// How many of these stand behind the point.
        scale: u8,
        /// Which of the two is wrong, and why.
        reason: &'static str,
    },
    /// A column has an option that is for columns of another kind.
    #[error("column {name}: {option} is for {wanted}, not for {kind}")]
    Style {
        /// Name of the column with the option.
        name: &'static str,
        /// Name of the option, as in [`super::Column`].
        option: &'static str,
        /// Which columns the option is for.
        wanted: &'static str,
        /// The kind of the column instead.
        kind: String,
    },
    /// The columns are not a batch of rows of this file.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A code has no entry in its dictionary.
    #[error("column {name}: code {code} has no entry in a dictionary of {entries}")]
    Code {
        /// Name of the column with the code.
        name: &'static str,
        /// The largest code of the batch.
        code: u32,
        /// How many entries the dictionary has.
        entries: usize,
    },
    /// Offsets of text run backwards or leave the bytes.
    #[error("column {name} has text at bytes {begin}..{end} of {bytes}")]
    Offsets {
        /// Name of the column of text.
        name: &'static str,
        /// Where the first bad value begins.
        begin: u32,
        /// Where the first bad value ends.
        end: u32,
        /// How many bytes the batch has for the column.
        bytes: usize,
    },
    /// A value that a reader would take for two, in a dialect that has no quotes.
    #[error(
        "column {name}, row {row} of the block: {byte:?} in a value, and this dialect has no quotes"
    )]
    Unquotable {
        /// Name of the column with the value.
        name: &'static str,
        /// The row, counted from 0.
        row: u64,
        /// The separator or line end in the value.
        byte: char,
    },
    /// The output refused the bytes.
    #[error("cannot write text: {0}")]
    Io(#[from] io::Error),
}
