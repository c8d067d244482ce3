//! What can go wrong.

use std::io;

use crate::columns::BatchError;

/// A result of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field that ORC cannot have.
    #[error("field {name} cannot be in an ORC file: {reason}")]
    Field {
        /// The field.
        name: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// An option out of its range.
    #[error("option {name} cannot be {value}: {reason}")]
    Option {
        /// The option.
        name: &'static str,
        /// The value.
        value: String,
        /// What it may be.
        reason: &'static str,
    },
    /// Columns that are not a batch of rows of this file.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A code behind the end of its dictionary.
    #[error("column {name} has code {code}, its dictionary {entries} entries")]
    Code {
        /// The column.
        name: &'static str,
        /// The code.
        code: u32,
        /// Entries of the dictionary.
        entries: usize,
    },
    /// Another dictionary, or none, in the middle of a stripe.
    #[error("column {name} came with {given} after {before} in one stripe")]
    Mixed {
        /// The column.
        name: &'static str,
        /// What this batch has.
        given: &'static str,
        /// What the stripe has.
        before: &'static str,
    },
    /// Offsets that run backwards or leave the bytes.
    #[error("column {name} has text at bytes {begin}..{end} of {bytes}")]
    Offsets {
        /// The column.
        name: &'static str,
        /// Where the first value begins, or the one that runs backwards.
        begin: u32,
        /// Where it ends.
        end: u32,
        /// Bytes given.
        bytes: usize,
    },
    /// A text that does not fit its column.
    #[error("column {name} has a text of {characters} characters, its type allows {most}")]
    TooLong {
        /// The column.
        name: &'static str,
        /// Characters of the text.
        characters: usize,
        /// Characters allowed.
        most: u32,
    },
    /// A number with more digits than its column has.
    #[error(
        "column {name} has the decimal {value} in units of its scale, beyond {precision} digits"
    )]
    TooLarge {
        /// The column.
        name: &'static str,
        /// The value, in units of the last digit.
        value: i64,
        /// Digits allowed.
        precision: u8,
    },
    /// A codec that failed.
    #[error("cannot compress a chunk with {codec}: {reason}")]
    Compress {
        /// The codec.
        codec: &'static str,
        /// What it says.
        reason: String,
    },
    /// A stripe of another file.
    #[error("a stripe of {given} columns given for a file of {expected}")]
    Stripe {
        /// Columns of the file.
        expected: usize,
        /// Columns of the stripe.
        given: usize,
    },
    /// A batch failed before: the stripe is not whole.
    #[error("the stripe in hand broke off after {rows} rows and cannot go on")]
    Failed {
        /// Rows that were whole.
        rows: usize,
    },
    /// The output failed.
    #[error("cannot write the ORC file: {0}")]
    Io(#[from] io::Error),
}
