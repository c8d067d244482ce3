//! Errors of collecting, and what to do about each.

use std::io;
use std::path::{Path, PathBuf};

/// Why collecting cannot begin or continue. What was written stays.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The address is not that of a broker: correct it.
    #[error("{text:?} is not a broker: {reason}; write mqtt://HOST:PORT/TOPIC or mqtts://...")]
    Address {
        /// The address as it was given, without a password.
        text: String,
        /// What is wrong with the address.
        reason: &'static str,
    },
    /// Certificates to trust are missing for TLS, or were given for a connection without it.
    #[error("{}", if *tls {
        "mqtts:// needs --tls-ca PEM with the roots to trust; Debian's are in /etc/ssl/certs/ca-certificates.crt"
    } else {
        "--tls-ca is for mqtts://, and the address says mqtt://"
    })]
    Trust {
        /// Whether the address asks for TLS.
        tls: bool,
    },
    /// The broker refuses us or the topic, or its certificate is not trusted. Waiting would not
    /// help.
    #[error("the broker refuses: {reason}")]
    Refused {
        /// The reason of the broker, or of TLS.
        reason: String,
    },
    /// Another process collects into this folder: choose another one.
    #[error("{} is being written by another collector", folder.display())]
    Busy {
        /// The folder that both were given.
        folder: PathBuf,
    },
    /// A system call failed: repair its cause and start again.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, such as `write`.
        action: &'static str,
        /// The file or folder of the operation.
        path: PathBuf,
        /// The error that the operating system returned.
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
