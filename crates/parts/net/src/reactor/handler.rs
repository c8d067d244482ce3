//! What a reactor needs from its user: answers to frames, and limits.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::{Closed, FrameRef, Outbound, PortOptions, Transport};

/// One connection of a [`crate::Reactor`]. The number of one that has ended is not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub(super) u64);

impl PortId {
    pub(super) fn new(index: usize, generation: u32) -> PortId {
        PortId(u64::from(generation) << 32 | index as u64)
    }

    /// The id as a number, for a user that has to store it as one.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The id for a number that [`PortId::number`] returned.
    pub fn numbered(number: u64) -> PortId {
        PortId(number)
    }

    pub(super) fn index(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The code that answers the frames of many connections.
pub trait Handler {
    /// A connection has come. Called before its first frame, and not for a connection that sends
    /// none.
    fn open(&mut self, port: PortId, peer: &str, transport: &Transport) {
        let _ = (port, peer, transport);
    }

    /// A frame has come. Answers go into `out` now, or later by [`crate::Reactor::send`]. `Break`
    /// ends the connection once its answers are written. This call must not wait, because all
    /// connections of the thread wait with it.
    fn frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()>;

    /// Whether the client of an accepted connection has shown that it may be here. Asked after each
    /// of its passes until it is true; until then the connection is under the limits of
    /// [`ReactorOptions`] for clients that are not admitted. By default a client is admitted with
    /// its first whole frame.
    fn is_admitted(&self, port: PortId) -> bool {
        let _ = port;
        true
    }

    /// A connection that was opened has ended.
    fn close(&mut self, port: PortId, why: Closed) {
        let _ = (port, why);
    }
}

/// The limits of a reactor.
#[derive(Debug, Clone)]
pub struct ReactorOptions {
    /// The limits of each single connection.
    pub port: PortOptions,
    /// Connections at once; a further one is closed as soon as it comes.
    pub most_connections: usize,
    /// Connections of clients that are not admitted yet. A further one waits to be accepted until
    /// the oldest is admitted, or has had a quarter of a second and gives its place up: an honest
    /// client is admitted within milliseconds.
    pub most_unadmitted: usize,
    /// Time from the first byte of a connection, TLS included, until its client must be admitted.
    pub hello_wait: Duration,
    /// The longest body from a client that is not admitted yet, unless
    /// [`PortOptions::most_body_bytes`] is less. A handler that asks for a secret wants this small.
    pub most_hello_bytes: usize,
    /// Bytes that the buffers of all connections may hold together: frames that are not whole yet,
    /// and answers that their clients have not read. Beyond this the connection that holds the most
    /// is closed. Those of [`crate::Port::pair`] do not count. Without this limit each connection
    /// may hold [`PortOptions::most_body_bytes`] and [`PortOptions::outbox_bytes`].
    pub most_held_bytes: usize,
    /// The size of each ring in bytes, a power of two; a connection has two. Rings larger than a
    /// core's own cache carry a third more in a window, because lines that the writer comes back to
    /// have left the reader's core by then.
    pub ring_bytes: u32,
    /// Connections that get rings; the others stay on their sockets. 0 offers no rings. All rings
    /// together take at most twice this number times [`ReactorOptions::ring_bytes`] of memory.
    pub most_rings: usize,
    /// How long to spin with nothing to do before sleeping.
    pub spin: Duration,
}

impl Default for ReactorOptions {
    /// Rings of 2 MiB, for 64 connections: 256 MiB at most.
    fn default() -> ReactorOptions {
        ReactorOptions {
            port: PortOptions::default(),
            most_connections: 1024,
            most_unadmitted: 256,
            hello_wait: Duration::from_secs(10),
            most_hello_bytes: 64 << 20,
            most_held_bytes: usize::MAX,
            ring_bytes: 2 << 20,
            most_rings: 64,
            spin: Duration::from_micros(100),
        }
    }
}
