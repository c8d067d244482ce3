//! What can go wrong while watching.

use std::io;
use std::path::{Path, PathBuf};

/// Why watching cannot begin or go on. What was committed stays, and the same command goes on
/// behind it.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The table, or an archive on its way there.
    #[error(transparent)]
    Ingest(#[from] dyno_ingest::Error),
    /// The collector of a live feed.
    #[error(transparent)]
    Collect(#[from] dyno_ingest_collect::CollectError),
    /// Another table than a directory said no, or nothing.
    #[error("{reason}")]
    Destination {
        /// Why.
        reason: String,
        /// Whether a later attempt may find it in a better mood.
        again: bool,
    },
    /// The system refused an operation on the folder: mend its cause.
    #[error("cannot {action} {}: {source}", path.display())]
    Folder {
        /// What was tried: `list`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The log does not give its records.
    #[error("{0}")]
    Source(SourceError),
    /// The log was not to be reached for longer than it was waited for.
    #[error("gave up after {waited_s} s: {last}")]
    Away {
        /// Seconds.
        waited_s: u64,
        /// The last failure.
        last: String,
    },
    /// Retention took records before they were loaded: say that they may be left out, or begin with
    /// another table.
    #[error(
        "topic {topic} partition {partition}: offsets {first} to {last} are gone before they were loaded; \
         --skip-lost goes on behind them"
    )]
    Lost {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The first offset that is gone.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// The log ends before what the ledger says was loaded: another log, or one from an old copy.
    #[error(
        "topic {topic} partition {partition} ends at offset {end}, and the table has offsets up to {next}: \
         this is another log, or one that was restored from a copy"
    )]
    Shorter {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset that its next record gets.
        end: u64,
        /// Where the ledger would go on.
        next: u64,
    },
    /// A batch cannot be loaded, whatever is tried: its records are not the feed's.
    #[error("topic {topic} partition {partition}, offsets {first} to {last}: {reason}")]
    Batch {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The first offset.
        first: u64,
        /// The last one.
        last: u64,
        /// Why not.
        reason: String,
    },
    /// Lines of this feed mean nothing outside their file.
    #[error(
        "feed {feed} does not come in records: its lines mean something in their file alone; watch a folder of its files"
    )]
    NoStream {
        /// The feed.
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

/// Why a log gives no records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// It cannot be reached, or is busy: a later attempt may do.
    #[error("{0}")]
    Away(String),
    /// It says no, and would again.
    #[error("{0}")]
    Refused(String),
    /// Offsets that were asked for are not there, in one of the partitions.
    #[error("{0}")]
    OutOfRange(String),
}
