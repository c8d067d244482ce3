//! The errors between a daemon and its holder.

use std::io;
use std::path::PathBuf;

/// Why a call of the holder failed.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Nothing listens there, or the connection failed.
    #[error("cannot {what} the holder at {path:?}: {source}")]
    Io {
        /// The action that failed, as it stands in the message.
        what: &'static str,
        /// The socket of the holder.
        path: PathBuf,
        /// The error number of the system.
        source: io::Error,
    },
    /// What came is not a message, or is one of a later version.
    #[error("not a message of a holder: {0}")]
    Message(String),
    /// The holder has no file of that name.
    #[error("nothing is held as {name:?}")]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// The holder has as many files as it accepts.
    #[error("the holder is full: it holds at most {most} files")]
    Full {
        /// The most files that it holds.
        most: usize,
    },
    /// A name or note that is longer than a message can say.
    #[error("{what} has {bytes} bytes, at most {most} go into a message")]
    TooLong {
        /// The part that is too long: name or note.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The most bytes that fit.
        most: usize,
    },
}
