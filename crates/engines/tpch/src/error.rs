//! What can be wrong with a request.

use std::fmt;
use std::ops::Range;

use crate::table::Table;

/// A request that cannot be met. Generating itself does not fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The scale factor is not a number in the range that this generator covers: choose another.
    Scale {
        /// What was asked for.
        given: f64,
    },
    /// No table has this name: see [`Table::ALL`].
    UnknownTable {
        /// What was asked for.
        given: String,
    },
    /// Units or rows that the table does not have at this scale factor.
    OutOfRange {
        /// The table.
        table: Table,
        /// `unit` or `row`.
        what: &'static str,
        /// What was asked for.
        given: Range<u64>,
        /// How many there are.
        available: u64,
    },
    /// A part that does not exist: parts are numbered from 1 to their count.
    Part {
        /// The part asked for.
        part: u64,
        /// Of how many.
        parts: u64,
    },
}

/// The result of a request.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Scale { given } => write!(
                f,
                "scale factor {given}: it must be a number from {} to {}",
                crate::scale::SMALLEST,
                crate::scale::LARGEST
            ),
            Error::UnknownTable { given } => {
                write!(f, "table {given:?}: not a table of TPC-H; they are")?;
                for table in Table::ALL {
                    write!(f, " {}", table.name())?;
                }
                Ok(())
            }
            Error::OutOfRange {
                table,
                what,
                given,
                available,
            } => write!(
                f,
                "{what}s {}..{} of {}: it has {available} {what}s at this scale factor",
                given.start,
                given.end,
                table.name()
            ),
            Error::Part { part, parts } => {
                write!(
                    f,
                    "part {part} of {parts}: parts are numbered from 1 to their count"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
