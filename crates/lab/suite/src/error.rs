//! What can go wrong around a run. A failing child is no error here: it becomes a sample that
//! says so.

use std::path::PathBuf;

/// Why a suite could not be read, planned or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The suite or peer file is wrong at a line; mend the file.
    #[error("{file}:{line}: {reason}")]
    Definition {
        /// The file, as the reader was told of it.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A file or directory could not be used; the path says which.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was touched.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No suite or peer of this name; the message lists those there are.
    #[error("no {kind} is called `{name}`; there are: {known}")]
    Unknown {
        /// `suite` or `peer`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// Comma-separated names.
        known: String,
    },
    /// A child program could not be started at all.
    #[error("{program} could not be started: {reason}")]
    Start {
        /// The executable.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// Data that cases need could not be made; nothing was timed.
    #[error("data `{name}` could not be prepared by {system}: {reason}")]
    Data {
        /// The section's name.
        name: String,
        /// The system that was making it.
        system: String,
        /// Its own words.
        reason: String,
    },
    /// The plan needs more than the machine has, or than the user grants; take a smaller size.
    #[error("the run does not fit: {0}")]
    TooBig(String),
    /// A peer could not be installed or does not answer as declared.
    #[error("peer {name}: {reason}")]
    Peer {
        /// Its name.
        name: String,
        /// What failed.
        reason: String,
    },
    /// The command that should run beside the samples could not be started.
    #[error("the command beside the run, `{command}`, could not be started: {reason}")]
    Beside {
        /// As given.
        command: String,
        /// What the system said.
        reason: String,
    },
    /// The record could not be written; samples up to here are on disk.
    #[error(transparent)]
    Record(#[from] dyno_record::RecordError),
    /// The run was stopped by the user before it could time anything.
    #[error("stopped before anything was timed")]
    Stopped,
}

impl Error {
    /// Wraps an I/O error with the path it concerns.
    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        Error::Io {
            path: path.into(),
            source,
        }
    }
}
