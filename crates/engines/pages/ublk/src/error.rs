//! What can go wrong with a device.

use std::io;

use dyno_pages::StoreError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// No driver, or not for us: do what the advice says, or use FUSE with a loop device.
    #[error("no ublk here: cannot open {path}: {source}; {advice}")]
    NotHere {
        /// What could not be opened.
        path: String,
        /// The system's reason.
        source: io::Error,
        /// What is missing, and how to get it.
        advice: String,
    },
    /// The driver refused a command.
    #[error("cannot {what} ublk device {number}: {source}")]
    Command {
        /// What was tried.
        what: &'static str,
        /// Which device; 4294967295 before it has a number.
        number: u32,
        /// The system's reason.
        source: io::Error,
    },
    /// Something beside the driver.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A setting that no device can have.
    #[error("{0}")]
    Settings(String),
    /// The store has no memory for another thread.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UblkError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
