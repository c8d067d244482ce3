//! Why Iceberg metadata cannot be read or written, and what the caller should do about it.

use std::path::PathBuf;

use dyno_formats::parquet_read::ReadError;
use dyno_io::IoError;

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong. The version that readers see is then as it was, unless only the last sync
/// failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed; commit again once its cause is repaired.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The metadata in the directory was written by another program, or by a table of other
    /// columns. Nothing was changed.
    #[error("{}: {reason}; nothing was changed", path.display())]
    Foreign {
        /// The file that is not ours.
        path: PathBuf,
        /// How this was seen.
        reason: String,
    },
    /// A file of the metadata is damaged.
    #[error(
        "{}: {reason}; remove the folder metadata, and it is written again from the table",
        path.display()
    )]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The type of a column is not one of Iceberg's.
    #[error("column {name}: Iceberg has no type for {given}")]
    Type {
        /// Name of the column.
        name: String,
        /// The type that it has.
        given: String,
    },
    /// The path of the table cannot be a location, because readers would take it for something
    /// else.
    #[error("{}: readers of Iceberg do not understand {reason} in the path of a table", path.display())]
    Location {
        /// The path of the table.
        path: PathBuf,
        /// What it contains.
        reason: &'static str,
    },
    /// A data file is missing, or its footer cannot be read.
    #[error(transparent)]
    DataFile(#[from] ReadError),
}

impl Error {
    /// Whether the cause may go away by itself, such as a full disk.
    pub fn may_pass(&self) -> bool {
        matches!(self, Error::Io(_))
    }
}
