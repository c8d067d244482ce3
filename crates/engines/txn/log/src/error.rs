//! Errors of a log, each with what the caller can do about it.

use std::path::{Path, PathBuf};

use dyno_io::{IoError, Storage};

use crate::manifest::CHECKPOINT_PREFIX;
use crate::position::Lsn;
use crate::segment;

/// A failed operation on a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Every buffer is being written. Nothing was appended: poll, then append again.
    #[error("the log is busy: {in_flight} writes are under way")]
    Busy {
        /// Writes that have not ended; for a remote log, the connected stores.
        in_flight: usize,
    },
    /// All segments hold records that are still needed. Nothing was appended: commit a checkpoint,
    /// then append again.
    #[error(
        "the log in {} is full: {segments} segments hold records after the last checkpoint{}",
        directory.display(), why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default()
    )]
    Full {
        /// The log's directory.
        directory: PathBuf,
        /// Files of segments that the log has.
        segments: usize,
        /// Why another file could not be made; `None` if [`crate::Options::segments_most`] forbids
        /// it.
        why: Option<String>,
    },
    /// The record or chunk is above the bound, so repeating the call does not help.
    #[error("a record of {len_bytes} bytes is above the log's bound of {most_bytes} bytes")]
    RecordTooLarge {
        /// The length that was refused.
        len_bytes: usize,
        /// The longest record or chunk accepted.
        most_bytes: usize,
    },
    /// The disk has no room for a segment, which is allocated before it is used.
    #[error(
        "{} needs {needed_bytes} bytes for the log, and {free_bytes} are free",
        directory.display()
    )]
    NoRoom {
        /// The log's directory.
        directory: PathBuf,
        /// The length of a segment.
        needed_bytes: u64,
        /// What the file system says is free.
        free_bytes: u64,
    },
    /// Another process, or another log of this process, has the directory open.
    #[error("the log in {} is in use", directory.display())]
    InUse {
        /// The directory that is locked.
        directory: PathBuf,
    },
    /// A write failed, so what is on the disk is unknown (see "Can Applications Recover from fsync
    /// Failures?", USENIX ATC 2020): drop the log and recover.
    #[error("the log in {} was given up: {reason}", directory.display())]
    Poisoned {
        /// The log's directory; a remote log has no directory and gives its number.
        directory: PathBuf,
        /// The message of the first failure.
        reason: String,
    },
    /// Bytes on the disk are not the bytes that were written: restore a backup.
    #[error("{} is damaged at byte {offset_bytes}: {what}", path.display())]
    Damaged {
        /// The file, or the directory if a file is missing.
        path: PathBuf,
        /// Where in it the damaged record, header or chunk begins.
        offset_bytes: u64,
        /// What is wrong there, for a person to read.
        what: String,
    },
    /// A later version of this program wrote the file: use that version.
    #[error("{} has format version {found}; this program knows up to {known}", path.display())]
    NewerVersion {
        /// The file that has the newer format.
        path: PathBuf,
        /// The format version that the file names.
        found: u32,
        /// The newest format version that this program reads.
        known: u32,
    },
    /// The manifest of a log is missing: the directory was copied in part, or the file was deleted.
    #[error(
        "{} has no file `manifest`, without which its log cannot be read{}: put the file back, or restore a backup",
        directory.display(),
        if *segments { "; files of the log lie there" } else { "" }
    )]
    NoManifest {
        /// The directory that was to be read.
        directory: PathBuf,
        /// Whether segments or checkpoints of a log lie there.
        segments: bool,
    },
    /// A directory that should be empty is not.
    #[error("{} holds a log already", directory.display())]
    Occupied {
        /// The directory that was to be written.
        directory: PathBuf,
    },
    /// Settings that cannot work, or that do not fit the existing log.
    #[error("log settings: {what}")]
    Settings {
        /// Which setting is refused and why.
        what: String,
    },
    /// A checkpoint is being written already.
    #[error("a checkpoint of {} is being written already", directory.display())]
    CheckpointUnderWay {
        /// The log's directory.
        directory: PathBuf,
    },
    /// A checkpoint cannot start the log at that position.
    #[error("a checkpoint cannot begin at {asked}: it must be from {low} to {high}")]
    CheckpointPosition {
        /// The position that the caller gave.
        asked: Lsn,
        /// The first position that recovery needs after the last checkpoint.
        low: Lsn,
        /// The durable end of the log.
        high: Lsn,
    },
    /// An operation of the file system failed.
    #[error(transparent)]
    Io(#[from] IoError),
}

impl LogError {
    /// Whether the same call may succeed later on the same log.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Full { .. } | Self::CheckpointUnderWay { .. }
        )
    }

    /// The error for a directory without a manifest. It tells a log that lost its manifest from a
    /// directory without a log.
    pub(crate) fn no_manifest(storage: &dyn Storage, directory: &Path) -> Result<Self, Self> {
        let names = if storage.exists(directory)? {
            storage.list(directory)?
        } else {
            Vec::new()
        };
        let of_a_log = |name: &String| {
            name.starts_with(segment::PREFIX) || name.starts_with(CHECKPOINT_PREFIX)
        };
        Ok(Self::NoManifest {
            directory: directory.to_path_buf(),
            segments: names.iter().any(of_a_log),
        })
    }

    pub(crate) fn damaged(path: &Path, offset_bytes: u64, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_path_buf(),
            offset_bytes,
            what: what.into(),
        }
    }
}
