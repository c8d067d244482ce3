//! What can go wrong between a store and a block device.

use std::io;
use std::path::{Path, PathBuf};

use dyno_pages::StoreError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum FuseError {
    /// The system refused a step; EPERM or EACCES: it needs root.
    #[error("cannot {what} {path:?}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// What came out of the end of requests is not a request.
    #[error("a request of the system cannot be read: {0}")]
    Request(&'static str),
    /// The kernel is older than 6.9: what was under way when the last daemon died waits for ever.
    /// Unmount and begin again; the store has all that was replied to.
    #[error("the kernel cannot repeat requests ({0}); Linux 6.9 and later can")]
    NoRepeat(#[source] io::Error),
    /// See the reason.
    #[error(
        "no swap on a file in user space with a loop device: to take a page out, the system would need \
         memory for the request first, and wait for ever; use ublk"
    )]
    Swap,
    /// The store has no memory for another thread.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FuseError {
    pub(crate) fn last(what: &'static str, path: impl AsRef<Path>) -> Self {
        Self::of(what, path)(io::Error::last_os_error())
    }

    pub(crate) fn of(what: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System {
            what,
            path: path.as_ref().to_owned(),
            source,
        }
    }
}
