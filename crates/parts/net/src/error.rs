//! What can go wrong between two ends.

use std::io;
use std::sync::Arc;

use crate::SendError;
use crate::ring::RingError;

/// The first byte of an alert, with which a server of TLS answers what is not TLS (RFC 8446,
/// section 5.1).
const TLS_ALERT: u8 = 21;

/// Bytes that are no frame: the connection they came from cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The peer speaks something else.
    #[error(
        "a frame begins with {found:#04x}, expected {:#04x}: the peer speaks {}",
        crate::MAGIC,
        if *found == TLS_ALERT { "TLS" } else { "another protocol" }
    )]
    Magic {
        /// The first byte.
        found: u8,
    },
    /// The peer is newer than this program: update it.
    #[error("a frame of version {found}, this program speaks {}", crate::VERSION)]
    Version {
        /// The peer's version.
        found: u8,
    },
    /// A body beyond what this end allows.
    #[error("a body of {bytes} bytes, at most {most_bytes} are allowed")]
    TooLong {
        /// What the header, or the sender, says.
        bytes: u64,
        /// The limit.
        most_bytes: u64,
    },
    /// Header or body were changed on the way.
    #[error("the frame of request {request} has checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// The request's id, if the header can be trusted.
        request: u32,
        /// What the header says.
        expected: u32,
        /// What the bytes give.
        found: u32,
    },
    /// The stream ended inside a frame.
    #[error("the stream ended inside a frame, after {bytes} bytes of it")]
    Torn {
        /// What came of it.
        bytes: usize,
    },
}

/// A failed connection or call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NetError {
    /// The text is not an address.
    #[error("{text:?} is not an address: {reason}")]
    Address {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An operation on a socket failed.
    #[error("cannot {action} {address}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// With whom.
        address: String,
        /// What the system says.
        #[source]
        source: Arc<io::Error>,
    },
    /// The peer sent what is not a frame.
    #[error("{address}: {source}")]
    Frame {
        /// The peer.
        address: String,
        /// What was wrong.
        #[source]
        source: FrameError,
    },
    /// The peer has gone. Whether it did what it was asked is not known.
    #[error("{address} closed the connection")]
    Closed {
        /// The peer.
        address: String,
    },
    /// No answer in time. Whether the peer did what it was asked is not known.
    #[error("{address} did not answer within {wait_ms} ms")]
    Late {
        /// The peer.
        address: String,
        /// How long was waited.
        wait_ms: u64,
    },
    /// The ring to the peer cannot be used: it was damaged, or the peer lies. Whether the peer did
    /// what it was asked is not known.
    #[error("{address}: {source}")]
    Ring {
        /// The peer.
        address: String,
        /// What was wrong.
        #[source]
        source: RingError,
    },
    /// The peer takes nothing that is sent to it. Whether it did what it was asked is not known.
    #[error("{address} does not read what it is sent")]
    Stuck {
        /// The peer.
        address: String,
    },
    /// The peer reads too slowly, and what waits for it has reached its bound. Nothing was sent.
    #[error("{address}: {source}")]
    Send {
        /// The peer.
        address: String,
        /// What stands against it.
        #[source]
        source: SendError,
    },
    /// As many requests as allowed are under way, and none was answered in time. Nothing was sent.
    #[error("{address} has {window} requests unanswered, no more are sent")]
    Full {
        /// The peer.
        address: String,
        /// The bound.
        window: usize,
    },
}

impl NetError {
    /// Whether the request was certainly not carried out, so that it may be sent again.
    pub fn unsent(&self) -> bool {
        matches!(
            self,
            NetError::Address { .. } | NetError::Full { .. } | NetError::Send { .. }
        )
    }

    /// Whether trying again with the same address and settings gives the same answer: the peer
    /// speaks something else, or one of the two ends refuses the other's certificate.
    pub fn is_lasting(&self) -> bool {
        match self {
            NetError::Address { .. } => true,
            NetError::Frame { source, .. } => {
                matches!(
                    source,
                    FrameError::Magic { .. } | FrameError::Version { .. }
                )
            }
            // The TLS library reports so what it read and could not accept.
            NetError::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            ),
            _ => false,
        }
    }

    pub(crate) fn io(action: &'static str, address: impl ToString, source: io::Error) -> NetError {
        NetError::Io {
            action,
            address: address.to_string(),
            source: Arc::new(source),
        }
    }
}
