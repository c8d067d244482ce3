//! What can go wrong, and what to do then.

use std::path::{Path, PathBuf};

use dyno_io::{IoError, Storage};

use crate::manifest::CHECKPOINT_PREFIX;
use crate::position::Lsn;
use crate::segment;

/// A failed operation on a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Every buffer is on its way: poll, then append again. Nothing was appended.
    #[error("the log is busy: {in_flight} writes are under way")]
    Busy {
        /// How many.
        in_flight: usize,
    },
    /// All segments hold records that are still needed: commit a checkpoint, then append again.
    /// Nothing was appended.
    #[error(
        "the log in {} is full: {segments} segments hold records after the last checkpoint{}",
        directory.display(), why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default()
    )]
    Full {
        /// Where.
        directory: PathBuf,
        /// How many there are.
        segments: usize,
        /// Why there are not more, when it is not the bound that was set.
        why: Option<String>,
    },
    /// The record will never fit.
    #[error("a record of {len_bytes} bytes is above the log's bound of {most_bytes} bytes")]
    RecordTooLarge {
        /// Its length.
        len_bytes: usize,
        /// The longest record.
        most_bytes: usize,
    },
    /// No room on the disk for what is taken ahead.
    #[error(
        "{} needs {needed_bytes} bytes for the log, and {free_bytes} are free",
        directory.display()
    )]
    NoRoom {
        /// Where.
        directory: PathBuf,
        /// What is to be taken.
        needed_bytes: u64,
        /// What there is.
        free_bytes: u64,
    },
    /// Another process, or another log of this one, has the directory.
    #[error("the log in {} is in use", directory.display())]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// A write failed, so what is on the disk is unknown (see "Can Applications Recover from fsync
    /// Failures?", USENIX ATC 2020): drop the log and recover.
    #[error("the log in {} was given up: {reason}", directory.display())]
    Poisoned {
        /// Where.
        directory: PathBuf,
        /// The first failure.
        reason: String,
    },
    /// Bytes that were on the disk are not what was written: restore a backup.
    #[error("{} is damaged at byte {offset_bytes}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it the damaged record, header or chunk begins.
        offset_bytes: u64,
        /// What is wrong.
        what: String,
    },
    /// Made by a later version of this program: use that one.
    #[error("{} has format version {found}; this program knows up to {known}", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The manifest of a log is gone: a directory that was not copied whole, or a file that was
    /// deleted.
    #[error(
        "{} has no file `manifest`, without which its log cannot be read{}: put the file back, or restore a backup",
        directory.display(),
        if *segments { "; files of the log lie there" } else { "" }
    )]
    NoManifest {
        /// The directory.
        directory: PathBuf,
        /// Whether segments or checkpoints of a log lie there.
        segments: bool,
    },
    /// A directory that should be empty is not.
    #[error("{} holds a log already", directory.display())]
    Occupied {
        /// The directory.
        directory: PathBuf,
    },
    /// Settings that cannot work, or do not fit the log that is there.
    #[error("log settings: {what}")]
    Settings {
        /// What is wrong.
        what: String,
    },
    /// A checkpoint is being written already.
    #[error("a checkpoint of {} is being written already", directory.display())]
    CheckpointUnderWay {
        /// Where.
        directory: PathBuf,
    },
    /// A checkpoint cannot start the log at that position.
    #[error("a checkpoint cannot begin at {asked}: it must be from {low} to {high}")]
    CheckpointPosition {
        /// What was asked.
        asked: Lsn,
        /// Where the last checkpoint begins.
        low: Lsn,
        /// What is durable.
        high: Lsn,
    },
    /// The system's reason.
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

    /// What a directory without a manifest is.
    pub(crate) fn no_manifest(storage: &dyn Storage, directory: &Path) -> Result<Self, Self> {
        let names = match storage.exists(directory)? {
            true => storage.list(directory)?,
            false => Vec::new(),
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
