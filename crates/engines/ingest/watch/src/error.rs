//! Why watching a folder, a log or a live feed fails.

use std::io;
use std::path::{Path, PathBuf};

/// Why watching cannot begin or continue. What was committed stays, and the same command continues
/// after it.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The table or an archive for it caused an error.
    #[error(transparent)]
    Ingest(#[from] dyno_ingest::Error),
    /// The collector of a live feed.
    #[error(transparent)]
    Collect(#[from] dyno_ingest_collect::CollectError),
    /// A table other than a directory refused, or did not answer.
    #[error("{reason}")]
    Destination {
        /// The message of that table.
        reason: String,
        /// Whether a later attempt may succeed.
        again: bool,
    },
    /// A call on the folder failed: repair its cause.
    #[error("cannot {action} {}: {source}", path.display())]
    Folder {
        /// The operation, such as `list`.
        action: &'static str,
        /// The file or folder of the operation.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// The log did not return its records.
    #[error("{0}")]
    Source(SourceError),
    /// The log could not be reached for longer than the limit.
    #[error("gave up after {waited_s} s: {last}")]
    Away {
        /// Seconds since the first failure.
        waited_s: u64,
        /// The message of the last failure.
        last: String,
    },
    /// Retention removed records before they were loaded: allow them to be skipped, or begin with
    /// another table.
    #[error(
        "topic {topic} partition {partition}: offsets {first} to {last} are gone before they were loaded; \
         --skip-lost goes on behind them"
    )]
    Lost {
        /// Name of the topic that is watched.
        topic: String,
        /// Number of the partition in its topic.
        partition: i32,
        /// The first offset that is gone.
        first: u64,
        /// The last offset that is gone, inclusive.
        last: u64,
    },
    /// The log ends before what the ledger says was loaded, so it is another log or an old copy.
    #[error(
        "topic {topic} partition {partition} ends at offset {end}, and the table has offsets up to {next}: \
         this is another log, or one that was restored from a copy"
    )]
    Shorter {
        /// Name of the topic that is watched.
        topic: String,
        /// Number of the partition in its topic.
        partition: i32,
        /// The offset that its next record gets.
        end: u64,
        /// The offset at which the ledger would continue.
        next: u64,
    },
    /// A batch can never be loaded, because its records are not the feed's.
    #[error("topic {topic} partition {partition}, offsets {first} to {last}: {reason}")]
    Batch {
        /// Name of the topic that is watched.
        topic: String,
        /// Number of the partition in its topic.
        partition: i32,
        /// The first offset of the batch.
        first: u64,
        /// The last offset of the batch, inclusive.
        last: u64,
        /// The reason that the load gave.
        reason: String,
    },
    /// Lines of this feed mean nothing outside their file.
    #[error(
        "feed {feed} does not come in records: its lines mean something in their file alone; watch a folder of its files"
    )]
    NoStream {
        /// Name of the feed that was requested.
        feed: &'static str,
    },
}

impl WatchError {
    pub(crate) fn folder(action: &'static str, path: &Path, source: io::Error) -> WatchError {
        WatchError::Folder {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the cause may go away by itself: a full disk, a server that is away, another writer.
    pub fn may_pass(&self) -> bool {
        use dyno_ingest::Error;
        match self {
            WatchError::Ingest(Error::Iceberg { source, .. }) => source.may_pass(),
            WatchError::Ingest(error) => matches!(
                error,
                Error::Io { .. } | Error::Locked { .. } | Error::Target(_)
            ),
            WatchError::Destination { again, .. } => *again,
            WatchError::Source(SourceError::Away(_)) => true,
            WatchError::Folder { .. } => true,
            _ => false,
        }
    }
}

/// Why a log returns no records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// It cannot be reached or is busy; a later attempt may succeed.
    #[error("{0}")]
    Away(String),
    /// It refused, and would refuse again.
    #[error("{0}")]
    Refused(String),
    /// Requested offsets do not exist in one of the partitions.
    #[error("{0}")]
    OutOfRange(String),
}
