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
        "{}: {bad} of {rows} rows are bad, more than the {allowed} that --max-bad allows; \
         nothing of it was loaded, the bad rows are in {}",
        path.display(), quarantine.display()
    )]
    TooManyBad {
        /// The input file.
        path: PathBuf,
        /// Bad rows.
        bad: u64,
        /// All rows.
        rows: u64,
        /// Bad rows allowed for this many rows.
        allowed: u64,
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
