//! Errors of loading, and what the caller should do about each.

use std::io;
use std::path::{Path, PathBuf};

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong. With any variant but [`Error::Iceberg`] the committed table is as it was
/// before the call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed; repeat the command once its cause is repaired.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, such as `read` or `create`.
        action: &'static str,
        /// The file or directory of the operation.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// Another process writes to this table; wait for it.
    #[error("table {} is being written by another process", table.display())]
    Locked {
        /// The table's directory, which holds the lock.
        table: PathBuf,
    },
    /// There is no table; load something into it first.
    #[error("no table in {}: load an archive into it first", table.display())]
    NoTable {
        /// The directory that was searched for a table.
        table: PathBuf,
    },
    /// The manifest cannot be used, because a newer program wrote it or it is damaged.
    #[error("manifest {}: {reason}", path.display())]
    Manifest {
        /// Path of the manifest that cannot be used.
        path: PathBuf,
        /// What is wrong with the manifest.
        reason: String,
    },
    /// The input is damaged or of an unknown kind; get it again. None of it was loaded.
    #[error("{} at byte {offset}: {reason}; nothing of it was loaded", path.display())]
    Input {
        /// The path of the input.
        path: PathBuf,
        /// Offset in the file as stored, that is compressed.
        offset: u64,
        /// What is wrong at that offset.
        reason: String,
    },
    /// The input cannot be loaded in the way that was requested.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// The path of the input.
        path: PathBuf,
        /// The reason, and often what to do instead.
        reason: String,
    },
    /// There are more bad rows than allowed; read the quarantine, then raise the limit or repair
    /// the file.
    #[error(
        "{}: {}{}; nothing of it was loaded, the bad rows are in {}",
        path.display(), how_many_bad(feed, *bad, *rows, *allowed), first_bad(first), quarantine.display()
    )]
    TooManyBad {
        /// The path of the input.
        path: PathBuf,
        /// The feed that it was loaded as.
        feed: &'static str,
        /// How many rows are bad.
        bad: u64,
        /// How many rows there are, good and bad.
        rows: u64,
        /// How many bad rows the limit allows for this many rows.
        allowed: u64,
        /// Line and reason of the first bad row of the file itself.
        first: Option<(u64, String)>,
        /// The file or table with the bad rows.
        quarantine: PathBuf,
    },
    /// The Iceberg metadata of the table cannot be written. What was committed stays committed, and
    /// the next load writes the metadata that is missing.
    #[error("Iceberg metadata of {}: {source}", table.display())]
    Iceberg {
        /// The table's directory.
        table: PathBuf,
        /// The reason, and often what to do.
        source: dyno_iceberg::Error,
    },
    /// The database that archives are loaded into refused or did not answer; its error says what to
    /// do.
    #[error(transparent)]
    Target(Box<dyn std::error::Error + Send + Sync>),
    /// The work was stopped on request; repeat the command to continue.
    #[error("stopped on request; archives already committed stay")]
    Stopped,
}

/// A file without a single good row is most likely a file of something else.
fn how_many_bad(feed: &str, bad: u64, rows: u64, allowed: u64) -> String {
    if bad == rows {
        format!("it is not an archive of {feed}: {bad} of {rows} rows are bad")
    } else {
        format!("{bad} of {rows} rows are bad, more than the {allowed} that --max-bad allows")
    }
}

fn first_bad(first: &Option<(u64, String)>) -> String {
    match first {
        Some((line, reason)) => format!("; the first is line {line}: {reason}"),
        None => String::new(),
    }
}

impl Error {
    /// Makes an [`Error::Io`] from a failed system call.
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
