//! The errors between a store and its block device.

use std::io;
use std::path::{Path, PathBuf};

use dyno_pages::StoreError;

/// Why a mount, a device or a serving thread failed.
#[derive(Debug, thiserror::Error)]
pub enum FuseError {
    /// A system call failed. EPERM and EACCES mean that it needs root.
    #[error("cannot {what} {path:?}: {source}")]
    System {
        /// The action that failed, as it stands in the message.
        what: &'static str,
        /// The file or directory that it failed on.
        path: PathBuf,
        /// The error number of the system.
        source: io::Error,
    },
    /// The kernel sent what is not a request of the protocol.
    #[error("a request of the system cannot be read: {0}")]
    Request(&'static str),
    /// The kernel is older than 6.9, so requests that were under way when the last daemon died wait
    /// for ever. Unmount and begin again; the store has everything that was replied to.
    #[error("the kernel cannot repeat requests ({0}); Linux 6.9 and later can")]
    NoRepeat(#[source] io::Error),
    /// Swap on this device would deadlock the machine; the message has the reason.
    #[error(
        "no swap on a file in user space with a loop device: to take a page out, the system would need \
         memory for the request first, and wait for ever; use ublk"
    )]
    Swap,
    /// The store has no memory for the contexts of another thread.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FuseError {
    pub(crate) fn last_os_error(what: &'static str, path: impl AsRef<Path>) -> Self {
        Self::system(what, path)(io::Error::last_os_error())
    }

    pub(crate) fn system(
        what: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System {
            what,
            path: path.as_ref().to_owned(),
            source,
        }
    }
}
