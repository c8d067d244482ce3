//! Computes counts and checksums of written tables by libraries that share no code with the
//! writers, which are `parquet`, `orc-rust` and `csv`.
//!
//! These libraries, and Arrow below them, take longer to build than all of `dyno`. So this crate
//! belongs to tests and to `dyno-sql`, which `dyno` starts when a written table must be checked.

mod feed;
mod spots;
mod tpch;
mod training_set;

use std::io;
use std::path::PathBuf;

use serde::Serialize;

pub use feed::feed;
pub use spots::spots;
pub use tpch::{Texts, tables};
pub use training_set::training_set;

/// The count and the checksum of a table, or of several together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// The number of rows.
    pub count: u64,
    /// The checksum of the rows (docs/formats/checksums.md), which depends on their order in a
    /// training set alone.
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
        /// The file or directory in question.
        path: PathBuf,
        /// The reason that the system gave.
        source: io::Error,
    },
    /// The table has no rows of the feed.
    #[error("{}: it has no archive of feed {feed}", table.display())]
    NoFeed {
        /// Directory of the table.
        table: PathBuf,
        /// The feed that was asked for.
        feed: String,
    },
    /// A file is not what it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file in question.
        path: PathBuf,
        /// The reason that the reader gave.
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
