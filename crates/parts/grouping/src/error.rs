use std::path::PathBuf;

use dyno_formats::parquet_read::ReadError;

/// An error of the caller's own functions, passed on as it is.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a scan has no answer.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// A column could not be read, because the file is damaged or has a form that its footer
    /// denies.
    #[error("{path}, row group {row_group}: {source}")]
    Read {
        /// Where the file was opened from.
        path: PathBuf,
        /// Number of the row group in the file, from 0.
        row_group: usize,
        /// What was wrong with the column.
        source: ReadError,
    },
    /// The caller refused the memory, or one of its functions failed.
    #[error(transparent)]
    Caller(BoxError),
    /// The keys have so many values that a combination of them does not fit into 64 bits.
    #[error("the keys have {values:?} different values, too many to be combined in 64 bits")]
    TooManyGroups {
        /// How many values each key has.
        values: Vec<usize>,
    },
    /// A thread of the scan panicked, which is a bug.
    #[error("a scan thread panicked")]
    Panicked,
}

/// A failure within a row group, before the file and the row group are added to it.
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
