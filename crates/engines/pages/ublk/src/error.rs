//! What can go wrong with a device.

use std::io;

use dyno_pages::StoreError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// The module is not loaded, or this is not root: load `ublk_drv`, or use FUSE with a loop device.
    #[error(
        "no ublk here: cannot open {path}: {source} (Linux 6.0 or later, modprobe ublk_drv, root)"
    )]
    NotHere {
        /// What could not be opened.
        path: String,
        /// The system's reason.
        source: io::Error,
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
