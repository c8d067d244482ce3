//! What can be wrong with a ring.

use std::io;
use std::sync::Arc;

use super::PositionError;

/// A ring that cannot be used, or not any more.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RingError {
    /// The system refused something.
    #[error("cannot {action} a ring: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system says.
        #[source]
        source: Arc<io::Error>,
    },
    /// The memory is not that of a ring that this program can use.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The other end's position is impossible.
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

/// Memory that was handed over and is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// It does not begin with `DYNORING`.
    #[error("the memory that was handed over is not a ring: its magic is wrong")]
    Magic,
    /// Another version of the layout.
    #[error("a ring of version {found}, this program knows version 1")]
    Version {
        /// The maker's version.
        found: u32,
    },
    /// No power of two, or outside the bounds.
    #[error("a ring of {found} bytes: a power of two is needed, and no more than was agreed")]
    Capacity {
        /// What the header says.
        found: u32,
    },
    /// The memory is shorter or longer than its header says.
    #[error("the memory of a ring has {found} bytes, its header asks for {expected}")]
    Length {
        /// The length.
        found: u64,
        /// What it should be.
        expected: u64,
    },
    /// The maker could cut the memory while it is used.
    #[error("the memory of a ring is not sealed against being cut")]
    Unsealed,
}
