//! Why a record could not be read or written.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Every failure names the file, and the line where there is one.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The operating system refused; mend the path, the rights or the free space, and try again.
    #[error("{path}: {doing}: {source}")]
    Io {
        /// The file or directory that could not be used.
        path: PathBuf,
        /// What was attempted, for example `write`.
        doing: &'static str,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// The directory holds a run already; a record is never overwritten. Choose another.
    #[error("{path}: holds a run already; choose a new directory")]
    Exists {
        /// The directory, which stays as it was.
        path: PathBuf,
    },
    /// Another process is writing this run.
    #[error("{path}: another process is writing this run")]
    Locked {
        /// The samples file that carries the lock.
        path: PathBuf,
    },
    /// The file is some other program's.
    #[error("{path}: not a {expected} file: magic is {found}, not \"{expected}\"")]
    Magic {
        /// The file that was to be read.
        path: PathBuf,
        /// The magic that belongs there.
        expected: &'static str,
        /// What stands there, as JSON or TOML.
        found: String,
    },
    /// Written by a newer program: use that program, or a later one, to read it.
    #[error(
        "{path}: written in version {found} of the {format} format; this program reads versions up to {newest}"
    )]
    Newer {
        /// The file that was to be read.
        path: PathBuf,
        /// Magic of the format, for example `dyno-run`.
        format: &'static str,
        /// The version that the file states.
        found: u64,
        /// The newest version that this program knows.
        newest: u32,
    },
    /// The file does not hold what its format says.
    #[error("{path}: line {line}: {reason}")]
    Malformed {
        /// The file that was to be read.
        path: PathBuf,
        /// Line of the file, from 1.
        line: usize,
        /// What is wrong with the line.
        reason: String,
    },
    /// A value that the stored form cannot hold, refused before anything was written.
    #[error("{path}: {object}: {reason}")]
    Unstorable {
        /// The file that would have held it.
        path: PathBuf,
        /// The sample, line or field that holds the value.
        object: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No run was found where one was looked for.
    #[error("{path}: no run here; `dyno run SUITE` makes one")]
    NoRun {
        /// The directory that was looked into.
        path: PathBuf,
    },
}

impl RecordError {
    /// Wraps a system error with the path and the deed, for `map_err`.
    pub(crate) fn io(
        path: &Path,
        doing: &'static str,
    ) -> impl FnOnce(std::io::Error) -> RecordError {
        let path = path.to_path_buf();
        move |source| RecordError::Io {
            path,
            doing,
            source,
        }
    }
}
