//! Why a request for rows is refused.

use std::fmt;
use std::ops::Range;

use crate::table::Table;

/// Why a request cannot be met. Generating itself never fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The scale factor is not a number in the range that this generator covers.
    Scale {
        /// The factor that was requested.
        given: f64,
    },
    /// No table has this name; see [`Table::ALL`].
    UnknownTable {
        /// The name that was given.
        given: String,
    },
    /// The table does not have these units or rows at this scale factor.
    OutOfRange {
        /// The table whose rows were requested.
        table: Table,
        /// Either `unit` or `row`, which the numbers count.
        what: &'static str,
        /// The range that was requested.
        given: Range<u64>,
        /// How many the table has.
        available: u64,
    },
    /// The part does not exist. Parts are numbered from 1 to their count.
    Part {
        /// The part that was requested.
        part: u64,
        /// The count of all parts.
        parts: u64,
    },
}

/// The result of a request that may be refused.
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
