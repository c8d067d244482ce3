//! The errors of making a region.

use std::io;

/// Why a region could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The system does not let this process handle its own page faults: give it CAP_SYS_PTRACE, let
    /// it open /dev/userfaultfd, or set vm.unprivileged_userfaultfd.
    #[error(
        "userfaultfd is not allowed here ({source}): it needs CAP_SYS_PTRACE, /dev/userfaultfd, or \
         vm.unprivileged_userfaultfd = 1"
    )]
    NotAllowed {
        /// The error number of the system.
        source: io::Error,
    },
    /// The kernel is older than 5.7, or was built without userfaultfd.
    #[error("this kernel cannot protect pages by userfaultfd ({source}); Linux 5.7 and later can")]
    NotSupported {
        /// The error number of the system.
        source: io::Error,
    },
    /// Too few pages: one instruction can touch several, and none of them may push out another.
    #[error(
        "{pages} pages in memory are too few, at least {} are needed",
        crate::LEAST_RESIDENT_PAGES
    )]
    TooFew {
        /// The number that was requested.
        pages: u64,
    },
    /// A descriptor that was handed over is of another kind.
    #[error("the descriptor is {what}, not a userfaultfd")]
    NotUserfault {
        /// What the system calls it.
        what: String,
    },
    /// Another call to the operating system failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The action that failed, as it stands in the message.
        what: &'static str,
        /// The error number of the system.
        source: io::Error,
    },
}

impl RegionError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
