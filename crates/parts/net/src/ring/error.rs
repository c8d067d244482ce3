//! The errors of a ring.

use std::io;
use std::sync::Arc;

use super::PositionError;

/// Why a ring cannot be used, or cannot be used any longer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RingError {
    /// A system call for the memory of the ring failed.
    #[error("cannot {action} a ring: {source}")]
    Io {
        /// The action that failed, as it stands in the message.
        action: &'static str,
        /// The error number of the system.
        #[source]
        source: Arc<io::Error>,
    },
    /// The memory is not that of a ring that this program can use.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The other end published a position that is impossible.
    #[error(transparent)]
    Position(#[from] PositionError),
}

impl RingError {
    pub(crate) fn io(action: &'static str, source: io::Error) -> RingError {
        RingError::Io {
            action,
            source: Arc::new(source),
        }
    }
}

/// Why memory that another process handed over is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The memory does not begin with `DYNORING`.
    #[error("the memory that was handed over is not a ring: its magic is wrong")]
    Magic,
    /// The layout has another version than this program knows.
    #[error("a ring of version {found}, this program knows version 1")]
    Version {
        /// The version that its maker wrote.
        found: u32,
    },
    /// The size is not a power of two, or outside the limits.
    #[error("a ring of {found} bytes: a power of two is needed, and no more than was agreed")]
    Capacity {
        /// The size that the header states.
        found: u32,
    },
    /// The memory is shorter or longer than its header says.
    #[error("the memory of a ring has {found} bytes, its header asks for {expected}")]
    Length {
        /// Its length in bytes.
        found: u64,
        /// The length that its header asks for.
        expected: u64,
    },
    /// The maker could truncate the memory while it is used, and an access would then kill this
    /// process.
    #[error("the memory of a ring is not sealed against being cut")]
    Unsealed,
}
