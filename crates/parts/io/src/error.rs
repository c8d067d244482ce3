//! What can go wrong between a sink or source and the system.

use std::io;
use std::path::{Path, PathBuf};

/// A failed operation on a file.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// The file system does not do O_DIRECT (tmpfs, some overlays): open it through the page cache.
    #[error("{} cannot be opened past the page cache: its file system refuses O_DIRECT", path.display())]
    DirectRefused {
        /// The file.
        path: PathBuf,
    },
    /// A direct operation on a position or length that is not a multiple of the alignment.
    #[error("{} of {len_bytes} bytes at {offset_bytes} is not aligned to {alignment_bytes} bytes", path.display())]
    Unaligned {
        /// The file.
        path: PathBuf,
        /// Position asked for.
        offset_bytes: u64,
        /// Length asked for.
        len_bytes: usize,
        /// What both must be multiples of.
        alignment_bytes: usize,
    },
    /// The system's own error.
    #[error("cannot {action} {}: {source}", path.display())]
    System {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl IoError {
    pub(crate) fn system(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::System {
            action,
            path: path.to_path_buf(),
            source,
        }
    }
}
