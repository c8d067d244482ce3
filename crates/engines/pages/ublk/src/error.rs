//! The errors of a ublk device.

use std::io;

use dyno_pages::StoreError;

/// Why a device could not be made or served.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// The driver is missing, or refuses this process: do what the advice says, or use FUSE with a
    /// loop device.
    #[error("no ublk here: cannot open {path}: {source}; {advice}")]
    NotHere {
        /// The file that could not be opened.
        path: String,
        /// The error number of the system.
        source: io::Error,
        /// What is missing, and how to get it.
        advice: String,
    },
    /// The driver refused a command.
    #[error("cannot {what} ublk device {number}: {source}")]
    Command {
        /// The command that failed, as it stands in the message.
        what: &'static str,
        /// The number of the device; 4294967295 before it has one.
        number: u32,
        /// The error number of the driver.
        source: io::Error,
    },
    /// A system call failed that the driver has no part in.
    #[error("cannot {what}: {source}")]
    System {
        /// The action that failed, as it stands in the message.
        what: &'static str,
        /// The error number of the system.
        source: io::Error,
    },
    /// A setting that a device cannot have; the text names it.
    #[error("{0}")]
    Settings(String),
    /// The store has no memory for the contexts of another thread.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UblkError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
