//! Counts and checksums of written tables, read by libraries that share no code with the writers:
//! `parquet`, `orc-rust` and `csv`.
//!
//! These libraries, and Arrow below them, take longer to build than all of `dyno`. So this crate
//! belongs to `dyno-sql`, which `dyno` starts when a written table must be checked, and to tests.

mod spots;
mod tpch;

use std::io;
use std::path::PathBuf;

use serde::Serialize;

pub use spots::spots;
pub use tpch::{Texts, tables};

/// What a table, or several together, add up to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Rows.
    pub count: u64,
    /// The sum of the rows, whatever their order (FORMAT.md).
    pub checksum: String,
}

/// Why a table could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory does not hold a table.
    #[error(transparent)]
    Table(#[from] dyno_ingest::Error),
    /// A file or directory is missing or not readable.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        reason: String,
    },
}

impl Error {
    fn io(path: impl Into<PathBuf>, source: io::Error) -> Error {
        Error::Io {
            path: path.into(),
            source,
        }
    }
}
