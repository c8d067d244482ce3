//! Why a writer of ORC files refuses a layout, a batch or a stripe.

use std::io;

use crate::columns::BatchError;

/// The result of every call in this module that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The layout has a field that an ORC file cannot have.
    #[error("field {name} cannot be in an ORC file: {reason}")]
    Field {
        /// Name of the field, or `(none)` for a layout without fields.
        name: &'static str,
        /// What is wrong with its name or kind.
        reason: String,
    },
    /// An option has a value out of its range.
    #[error("option {name} cannot be {value}: {reason}")]
    Option {
        /// Name of the option, as in [`super::Options`].
        name: &'static str,
        /// The value that was requested.
        value: String,
        /// Which values are allowed.
        reason: &'static str,
    },
    /// The columns are not a batch of rows of this file.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A code lies behind the end of its dictionary.
    #[error("column {name} has code {code}, its dictionary {entries} entries")]
    Code {
        /// Name of the column with the code.
        name: &'static str,
        /// The first or largest code that has no entry.
        code: u32,
        /// How many entries the dictionary has.
        entries: usize,
    },
    /// A batch has another dictionary than the stripe began with, or none where it had one.
    #[error("column {name} came with {given} after {before} in one stripe")]
    Mixed {
        /// Name of the column that changed.
        name: &'static str,
        /// The form in which this batch came.
        given: &'static str,
        /// The form in which the stripe's earlier batches came.
        before: &'static str,
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
    /// A text is longer than its column's type allows.
    #[error("column {name} has a text of {characters} characters, its type allows {most}")]
    TooLong {
        /// Name of the column of text.
        name: &'static str,
        /// How many characters the text has.
        characters: usize,
        /// How many characters the type allows.
        most: u32,
    },
    /// A decimal has more digits than its column's precision.
    #[error(
        "column {name} has the decimal {value} in units of its scale, beyond {precision} digits"
    )]
    TooLarge {
        /// Name of the column of decimals.
        name: &'static str,
        /// The value, in units of the last digit.
        value: i64,
        /// How many digits the type allows.
        precision: u8,
    },
    /// The codec refused a chunk or could not be set up.
    #[error("cannot compress a chunk with {codec}: {reason}")]
    Compress {
        /// Name of the codec, without its level.
        codec: &'static str,
        /// What the codec's library said.
        reason: String,
    },
    /// The stripe was encoded for a file of another layout.
    #[error("a stripe of {given} columns given for a file of {expected}")]
    Stripe {
        /// How many columns the file has.
        expected: usize,
        /// How many columns the stripe has.
        given: usize,
    },
    /// An earlier batch failed, so the stripe is not whole and its writer is of no more use.
    #[error("the stripe in hand broke off after {rows} rows and cannot go on")]
    Failed {
        /// How many rows were appended before the batch that failed.
        rows: usize,
    },
    /// The output failed, so what was written so far is not an ORC file.
    #[error("cannot write the ORC file: {0}")]
    Io(#[from] io::Error),
}
