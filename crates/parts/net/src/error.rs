//! The errors between two ends of a connection.

use std::io;
use std::sync::Arc;

use crate::SendError;
use crate::ring::RingError;

/// The first byte of an alert, with which a TLS server answers what is not TLS (RFC 8446, section
/// 5.1).
const TLS_ALERT: u8 = 21;

/// Bytes that are not a frame: the connection that they came from cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The peer speaks another protocol.
    #[error(
        "a frame begins with {found:#04x}, expected {:#04x}: the peer speaks {}",
        crate::MAGIC,
        if *found == TLS_ALERT { "TLS" } else { "another protocol" }
    )]
    Magic {
        /// The first byte that came.
        found: u8,
    },
    /// The peer is newer than this program, which has to be updated.
    #[error("a frame of version {found}, this program speaks {}", crate::VERSION)]
    Version {
        /// The version that the peer speaks.
        found: u8,
    },
    /// A body is longer than this end allows.
    #[error("a body of {bytes} bytes, at most {most_bytes} are allowed")]
    TooLong {
        /// The length that the header, or the sender, states.
        bytes: u64,
        /// The limit of this end.
        most_bytes: u64,
    },
    /// The header or the body was changed on the way.
    #[error("the frame of request {request} has checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// The id of the request, if the header can be trusted.
        request: u32,
        /// The checksum in the header.
        expected: u32,
        /// The checksum of the bytes that came.
        found: u32,
    },
    /// The stream ended inside a frame.
    #[error("the stream ended inside a frame, after {bytes} bytes of it")]
    Torn {
        /// Bytes of the frame that had come.
        bytes: usize,
    },
}

/// Why a connection or a call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NetError {
    /// The text is not an address.
    #[error("{text:?} is not an address: {reason}")]
    Address {
        /// The text that was given as an address.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An operation on a socket failed.
    #[error("cannot {action} {address}: {source}")]
    Io {
        /// The action that failed, as it stands in the message.
        action: &'static str,
        /// The peer that the socket was connected to.
        address: String,
        /// The error of the system, or of the TLS library.
        #[source]
        source: Arc<io::Error>,
    },
    /// The peer sent bytes that are not a frame.
    #[error("{address}: {source}")]
    Frame {
        /// The address of the peer.
        address: String,
        /// What was wrong with the bytes.
        #[source]
        source: FrameError,
    },
    /// The peer has closed the connection. Whether it did what it was asked is unknown.
    #[error("{address} closed the connection")]
    Closed {
        /// The address of the peer.
        address: String,
    },
    /// No answer came in time. Whether the peer did what it was asked is unknown.
    #[error("{address} did not answer within {wait_ms} ms")]
    Late {
        /// The address of the peer.
        address: String,
        /// How long the request waited, in milliseconds.
        wait_ms: u64,
    },
    /// The ring to the peer cannot be used: it was damaged, or the peer lies. Whether the peer did
    /// what it was asked is unknown.
    #[error("{address}: {source}")]
    Ring {
        /// The address of the peer.
        address: String,
        /// What was wrong with the ring.
        #[source]
        source: RingError,
    },
    /// The peer reads nothing that is sent to it. Whether it did what it was asked is unknown.
    #[error("{address} does not read what it is sent")]
    Stuck {
        /// The address of the peer.
        address: String,
    },
    /// The peer reads too slowly, and the bytes that wait for it have reached their limit. Nothing
    /// was sent.
    #[error("{address}: {source}")]
    Send {
        /// The address of the peer.
        address: String,
        /// The limit that was reached.
        #[source]
        source: SendError,
    },
    /// As many requests as the window allows are under way, and none was answered in time. Nothing
    /// was sent.
    #[error("{address} has {window} requests unanswered, no more are sent")]
    Full {
        /// The address of the peer.
        address: String,
        /// The most requests that may be under way.
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

    /// Whether trying again with the same address and settings gives the same error: the peer
    /// speaks another protocol, or one of the two ends refuses the other's certificate.
    pub fn is_lasting(&self) -> bool {
        match self {
            NetError::Address { .. } => true,
            NetError::Frame { source, .. } => {
                matches!(
                    source,
                    FrameError::Magic { .. } | FrameError::Version { .. }
                )
            }
            // The TLS library uses these kinds for messages that it could not accept.
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
