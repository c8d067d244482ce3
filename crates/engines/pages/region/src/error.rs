//! Why there is no region.

use std::io;

/// Why a region could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The system does not hand faults to this process: give it CAP_SYS_PTRACE, let it open
    /// /dev/userfaultfd, or set vm.unprivileged_userfaultfd.
    #[error(
        "userfaultfd is not allowed here ({source}): it needs CAP_SYS_PTRACE, /dev/userfaultfd, or \
         vm.unprivileged_userfaultfd = 1"
    )]
    NotAllowed {
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel is older than 5.7, or is built without it.
    #[error("this kernel cannot protect pages by userfaultfd ({source}); Linux 5.7 and later can")]
    NotSupported {
        /// The system's reason.
        source: io::Error,
    },
    /// An instruction can touch several pages at once.
    #[error(
        "{pages} pages in memory are too few, at least {} are needed",
        crate::LEAST_RESIDENT_PAGES
    )]
    TooFew {
        /// What was asked for.
        pages: u64,
    },
    /// The system refused something else.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl RegionError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
