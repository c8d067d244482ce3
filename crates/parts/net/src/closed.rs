//! Why a connection ended, whichever half of the crate served it.

use std::io;

use crate::ring::RingError;
use crate::{FrameError, NetError};

/// Why a connection ended. The limits that the variants name are those of [`crate::ServeOptions`],
/// [`crate::ReactorOptions`] and [`crate::PortOptions`].
#[derive(Debug)]
pub enum Closed {
    /// The client hung up between two frames, or the server stops.
    Peer,
    /// The client sent bytes that are not a frame.
    Frame(FrameError),
    /// Reading or writing failed, as the system says.
    Io(io::Error),
    /// The service or handler ended the connection.
    Service,
    /// The peer read nothing of what waits for it for as long as `write_wait`.
    Stuck,
    /// The client read its answers, or sent a frame whose memory other clients waited for, more
    /// slowly than `least_rate`.
    Slow,
    /// The client was not admitted within `hello_wait`.
    Late,
    /// The connection had to make room. Its client was not admitted yet and a newer one needed the
    /// place, or it was admitted when all places were taken, or all connections held too much
    /// memory and this one the most.
    Crowded,
    /// The ring to the client cannot be used: it was damaged, or the client lies.
    Ring(RingError),
}

impl Closed {
    /// The error that a client of `address` reports for this end.
    pub fn into_error(self, address: &str) -> NetError {
        let address = address.to_owned();
        match self {
            Closed::Peer | Closed::Service | Closed::Late | Closed::Crowded => {
                NetError::Closed { address }
            }
            Closed::Frame(source) => NetError::Frame { address, source },
            Closed::Io(error) => NetError::io("use the connection to", address, error),
            Closed::Ring(source) => NetError::Ring { address, source },
            Closed::Stuck | Closed::Slow => NetError::Stuck { address },
        }
    }
}
