//! What can go wrong while fetching.

use std::io;
use std::path::{Path, PathBuf};

/// Why an archive was not fetched. What came of it stays aside for the next attempt.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The text is not a period: mend it.
    #[error("{text:?} is not a period of {feed}: {reason}")]
    Period {
        /// What was given.
        text: String,
        /// The feed.
        feed: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The server says no.
    #[error("{url}: the server answers {status}")]
    Refused {
        /// What was asked for.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// No answer that is of use came, after several attempts: try again later, it goes on from
    /// there.
    #[error("{url}: {reason} ({attempts} attempts)")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// What happened last.
        reason: String,
        /// How often.
        attempts: u32,
    },
    /// What the server has is damaged; nothing of it is kept.
    #[error("{url}: what came is damaged: {reason}")]
    Damaged {
        /// What was asked for.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The system refused an operation: mend its cause.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `write`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It was asked to stop; the same command continues.
    #[error("stopped on request; what has come stays for the next attempt")]
    Stopped,
}

impl FetchError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> FetchError {
        FetchError::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
