//! What can go wrong between a daemon and its holder.

use std::io;
use std::path::PathBuf;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Nothing listens there, or the connection failed.
    #[error("cannot {what} the holder at {path:?}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Its socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// What came is not a message, or one of a later version.
    #[error("not a message of a holder: {0}")]
    Message(String),
    /// The holder has nothing of that name.
    #[error("nothing is held as {name:?}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The holder has as much as it holds at most.
    #[error("the holder is full: it holds at most {most} files")]
    Full {
        /// The bound.
        most: usize,
    },
    /// A name or note that is longer than a message can say.
    #[error("{what} has {bytes} bytes, at most {most} go into a message")]
    TooLong {
        /// Name or note.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The bound.
        most: usize,
    },
}
