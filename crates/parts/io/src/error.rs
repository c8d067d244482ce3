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
    /// The system has no io_uring for this process: write without it.
    #[error("{} cannot be written through io_uring: {hint} ({source})", path.display())]
    UringRefused {
        /// The file.
        path: PathBuf,
        /// What usually stands behind it.
        hint: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A file has the final name already: remove it, or allow it to be replaced.
    #[error("{} exists, and may not be replaced", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another writer is at work on the same file: wait for it, or write elsewhere.
    #[error("{} is being written by another process", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The sink was used after an error: give it up.
    #[error("cannot go on with {}: an earlier write of it failed", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// The reader of a pipe has gone: stop quietly, or say that it went.
    #[error("cannot write to {name}: its reader has closed it")]
    ClosedPipe {
        /// What was written to.
        name: String,
    },
    /// A name that is not a sink.
    #[error("{name:?} is not a sink: give auto, std, direct, uring, null or stdout")]
    UnknownSink {
        /// What was given.
        name: String,
    },
    /// A store that is not a file (see `dyno-objects`).
    #[error(transparent)]
    Remote(Box<dyn std::error::Error + Send + Sync>),
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
    /// The error below an [`io::Error`] that [`crate::SinkWriter`] made, or the system's own.
    ///
    /// # Errors
    /// `error` itself when no sink made it.
    pub fn below(error: io::Error) -> Result<Self, io::Error> {
        error.downcast::<Self>()
    }

    /// The system's kind of it, where the system spoke.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::System { source, .. } => source.kind(),
            Self::DirectRefused { .. } | Self::UringRefused { .. } => io::ErrorKind::Unsupported,
            Self::Unaligned { .. } | Self::UnknownSink { .. } => io::ErrorKind::InvalidInput,
            Self::Exists { .. } => io::ErrorKind::AlreadyExists,
            Self::Busy { .. } => io::ErrorKind::ResourceBusy,
            Self::ClosedPipe { .. } => io::ErrorKind::BrokenPipe,
            Self::Broken { .. } | Self::Remote(_) => io::ErrorKind::Other,
        }
    }

    /// The system's error `source` from `action` on `path`, for code that implements a
    /// [`crate::Device`].
    pub fn system(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::System {
            action,
            path: path.to_path_buf(),
            source,
        }
    }
}
