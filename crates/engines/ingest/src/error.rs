//! What can go wrong, and what the caller should do about it.

use std::io;
use std::path::{Path, PathBuf};

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong. Whatever the variant, the committed table is as it was before the call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused an operation; repeat when its cause is mended.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `read`, `create`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process writes to this table; wait for it.
    #[error("table {} is being written by another process", table.display())]
    Locked {
        /// The table's directory.
        table: PathBuf,
    },
    /// There is no table; load something into it first.
    #[error("no table in {}: load an archive into it first", table.display())]
    NoTable {
        /// The directory looked into.
        table: PathBuf,
    },
    /// The manifest cannot be used; a newer program wrote it, or something damaged it.
    #[error("manifest {}: {reason}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The input is damaged or of an unknown kind; get it again. Nothing of it was loaded.
    #[error("{} at byte {offset}: {reason}; nothing of it was loaded", path.display())]
    Input {
        /// The input file.
        path: PathBuf,
        /// Offset in the file as stored.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The input cannot be taken as asked.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// The input file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// More bad rows than allowed; look at the quarantine, then raise the limit or mend the file.
    #[error(
        "{}: {}{}; nothing of it was loaded, the bad rows are in {}",
        path.display(), how_many_bad(feed, *bad, *rows, *allowed), first_bad(first), quarantine.display()
    )]
    TooManyBad {
        /// The input file.
        path: PathBuf,
        /// The feed that it was loaded as.
        feed: &'static str,
        /// Bad rows.
        bad: u64,
        /// All rows.
        rows: u64,
        /// Bad rows allowed for this many rows.
        allowed: u64,
        /// Line and reason of the first bad row that was found in the file itself.
        first: Option<(u64, String)>,
        /// Where the bad rows are.
        quarantine: PathBuf,
    },
    /// The database that the archives go to said no, or nothing; its error says what to do.
    #[error(transparent)]
    Target(Box<dyn std::error::Error + Send + Sync>),
    /// The work was stopped on request; repeat the command to go on.
    #[error("stopped on request; archives already committed stay")]
    Stopped,
}

/// A file without a single good row is most likely a file of something else.
fn how_many_bad(feed: &str, bad: u64, rows: u64, allowed: u64) -> String {
    match bad == rows {
        true => format!("it is not an archive of {feed}: {bad} of {rows} rows are bad"),
        false => {
            format!("{bad} of {rows} rows are bad, more than the {allowed} that --max-bad allows")
        }
    }
}

fn first_bad(first: &Option<(u64, String)>) -> String {
    match first {
        Some((line, reason)) => format!("; the first is line {line}: {reason}"),
        None => String::new(),
    }
}

impl Error {
    /// An [`Error::Io`].
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
