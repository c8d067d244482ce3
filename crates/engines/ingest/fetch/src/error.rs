//! Errors of a download, and what to do about each.

use std::io;
use std::path::{Path, PathBuf};

/// Why an archive was not downloaded. The bytes that were received stay in a partial file for the
/// next attempt.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The text is not a period: correct it.
    #[error("{text:?} is not a period of {feed}: {reason}")]
    Period {
        /// The text as it was given.
        text: String,
        /// Name of the feed whose archives were requested.
        feed: &'static str,
        /// What is wrong with the period or the file.
        reason: String,
    },
    /// The server refuses the request: check the URL.
    #[error("{url}: the server answers {status}")]
    Refused {
        /// The URL of the file.
        url: String,
        /// The HTTP status of the answer.
        status: u16,
    },
    /// Several attempts brought no byte: try again later. The next call continues the download.
    #[error("{url}: {reason} ({attempts} attempts)")]
    Unreachable {
        /// The URL of the file.
        url: String,
        /// What happened to the last attempt.
        reason: String,
        /// How many attempts in succession failed.
        attempts: u32,
    },
    /// The file of the server is damaged. Nothing of it is kept.
    #[error("{url}: the file is damaged: {reason}")]
    Damaged {
        /// The URL of the file.
        url: String,
        /// What is wrong with the period or the file.
        reason: String,
    },
    /// A system call failed: repair its cause.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, such as `write`.
        action: &'static str,
        /// The file or folder of the operation.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// A stop was requested; the same command continues the download.
    #[error("stopped on request; the next attempt continues the download")]
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
