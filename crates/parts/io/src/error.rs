//! The errors between a sink or source and the system.

use std::io;
use std::path::{Path, PathBuf};

/// A failed operation on a file.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// The file system does not support O_DIRECT (tmpfs, some overlays): open the file through the
    /// page cache.
    #[error("{} cannot be opened past the page cache: its file system refuses O_DIRECT", path.display())]
    DirectRefused {
        /// The file that was to be opened.
        path: PathBuf,
    },
    /// A direct operation on a position or length that is not a multiple of the alignment.
    #[error("{} of {len_bytes} bytes at {offset_bytes} is not aligned to {alignment_bytes} bytes", path.display())]
    Unaligned {
        /// The file that was to be read or written.
        path: PathBuf,
        /// The position in the file.
        offset_bytes: u64,
        /// The length of the block.
        len_bytes: usize,
        /// Both must be multiples of this.
        alignment_bytes: usize,
    },
    /// The system has no io_uring for this process: write without it.
    #[error("{} cannot be written through io_uring: {hint} ({source})", path.display())]
    UringRefused {
        /// The file that was to be written.
        path: PathBuf,
        /// The usual cause of this refusal.
        hint: &'static str,
        /// The error number of the system.
        source: io::Error,
    },
    /// The final name is taken by another file: remove that, or allow it to be replaced.
    #[error("{} exists, and may not be replaced", path.display())]
    Exists {
        /// The name that is taken.
        path: PathBuf,
    },
    /// Another process is writing the same file: wait for it, or write elsewhere.
    #[error("{} is being written by another process", path.display())]
    Busy {
        /// The file that the other process writes.
        path: PathBuf,
    },
    /// The sink was used after an error, and must be given up.
    #[error("cannot go on with {}: an earlier write of it failed", path.display())]
    Broken {
        /// The file that an earlier write failed on.
        path: PathBuf,
    },
    /// The reader of a pipe has closed it: stop quietly, or report it.
    #[error("cannot write to {name}: its reader has closed it")]
    ClosedPipe {
        /// The name of the stream, for people.
        name: String,
    },
    /// The name is not that of a sink.
    #[error("{name:?} is not a sink: give auto, std, direct, uring, null or stdout")]
    UnknownSink {
        /// The name that was given.
        name: String,
    },
    /// The error of a store that is not a file (see `dyno-objects`).
    #[error(transparent)]
    Remote(Box<dyn std::error::Error + Send + Sync>),
    /// Any other error of the operating system.
    #[error("cannot {action} {}: {source}", path.display())]
    System {
        /// The action that failed, as it stands in the message.
        action: &'static str,
        /// The file or directory that it failed on.
        path: PathBuf,
        /// The error number of the system.
        source: io::Error,
    },
}

impl IoError {
    /// Takes the error out of an [`io::Error`] that [`crate::SinkWriter`] made.
    ///
    /// # Errors
    /// `error` itself if it did not come from a sink.
    pub fn below(error: io::Error) -> Result<Self, io::Error> {
        error.downcast::<Self>()
    }

    /// The kind of error in the terms of the standard library.
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

    /// Wraps the error `source` of `action` on `path`, for code that implements a
    /// [`crate::Device`].
    pub fn system(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::System {
            action,
            path: path.to_path_buf(),
            source,
        }
    }
}
