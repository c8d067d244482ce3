use std::path::PathBuf;

use dyno_formats::parquet_read::ReadError;

/// An error of the caller's own.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// A column could not be read; the file is damaged, or of a form that its footer denies.
    #[error("{path}, row group {row_group}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Number of the row group in the file, from 0.
        row_group: usize,
        /// What was wrong.
        source: ReadError,
    },
    /// The memory was refused, or a function failed.
    #[error(transparent)]
    Caller(BoxError),
    /// The keys have so many values that a combination of them does not fit into 64 bits.
    #[error("the keys have {values:?} different values, too many to be combined in 64 bits")]
    TooManyGroups {
        /// For each key.
        values: Vec<usize>,
    },
    /// A thread ended in a panic, which is a bug.
    #[error("a scan thread panicked")]
    Panicked,
}

/// A failure inside of a row group, before its place is known.
pub(crate) enum Failure {
    Read(ReadError),
    Other(GroupError),
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<GroupError> for Failure {
    fn from(error: GroupError) -> Self {
        Self::Other(error)
    }
}
