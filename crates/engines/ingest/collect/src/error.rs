//! What can go wrong while collecting.

use std::io;
use std::path::{Path, PathBuf};

/// Why collecting cannot begin or go on. What was written stays.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The address is not a broker's: mend it.
    #[error("{text:?} is not a broker: {reason}; write mqtt://HOST:PORT/TOPIC or mqtts://...")]
    Address {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Whom to trust was not said where it matters, or said where it does not.
    #[error("{}", match tls {
        true => "mqtts:// needs --tls-ca PEM with the roots to trust; Debian's are in /etc/ssl/certs/ca-certificates.crt",
        false => "--tls-ca is for mqtts://, and the address says mqtt://",
    })]
    Trust {
        /// Whether the address asks for TLS.
        tls: bool,
    },
    /// The broker does not let us in, is not whom we trust, or does not know the topic: waiting
    /// would not help.
    #[error("the broker refuses: {reason}")]
    Refused {
        /// Its reason.
        reason: String,
    },
    /// Another process collects into this folder: take another one.
    #[error("{} is being written by another collector", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// The system refused an operation: mend its cause and start again.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `write`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl CollectError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> CollectError {
        CollectError::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
