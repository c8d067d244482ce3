//! One connection that never blocks: its owner polls it, and no other thread touches it.

mod clock;
mod connect;
mod inbox;
mod link;
mod outbound;
pub(crate) mod sleep;

use std::fmt;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;

pub(crate) use clock::{CoarseInstant, coarse_now};
pub use inbox::FrameRef;
pub(crate) use inbox::Inbox;
use link::LinkError;
pub(crate) use link::{Link, RingLink, TlsLink, is_later};
pub use outbound::{Outbound, SendError};
use sleep::{Interest, wait_one};

use crate::{Closed, Head};

/// The longest single sleep. Deadlines are checked in between, and a lost wake-up costs at most
/// this much.
const MOST_SLEEP: Duration = Duration::from_millis(100);
/// Polls between two reads of the clock, which costs as much as a look at a ring.
const LOOKS: u32 = 16;

/// The limits of a polled connection.
#[derive(Debug, Clone)]
pub struct PortOptions {
    /// The longest body that is accepted; a longer one ends the connection.
    pub most_body_bytes: usize,
    /// While this many bytes are unsent, no more frames are accepted and no more requests are read.
    pub outbox_bytes: usize,
    /// How long connecting, with everything that belongs to it, may take.
    pub connect_wait: Duration,
    /// How long a peer may leave what waits for it unread before it counts as dead.
    pub write_wait: Duration,
    /// Whether to move to a ring if the other end is on this host and offers one.
    pub ring: bool,
    /// The largest ring that is accepted from a server, in bytes for each direction.
    pub most_ring_bytes: u32,
    /// TLS settings for an address of TCP; `None` connects in the clear.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Default for PortOptions {
    fn default() -> PortOptions {
        PortOptions {
            most_body_bytes: 64 << 20,
            outbox_bytes: 4 << 20,
            connect_wait: Duration::from_secs(5),
            write_wait: Duration::from_secs(30),
            ring: true,
            most_ring_bytes: 4 << 20,
            tls: None,
        }
    }
}

/// What a connection travels on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// Shared memory, between two processes of one host.
    Ring,
    /// A Unix socket, within one host.
    Unix,
    /// TCP in the clear, with TCP_NODELAY.
    Tcp,
    /// TLS over TCP, with TCP_NODELAY.
    Tls,
}

/// What a connection travels on, and why on that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    /// The transport that was chosen.
    pub kind: TransportKind,
    /// The reason for the choice, as a sentence for people.
    pub why: String,
}

impl TransportKind {
    /// Every kind, fastest first.
    pub const ALL: [TransportKind; 4] = [
        TransportKind::Ring,
        TransportKind::Unix,
        TransportKind::Tcp,
        TransportKind::Tls,
    ];
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransportKind::Ring => "ring",
            TransportKind::Unix => "unix",
            TransportKind::Tcp => "tcp",
            TransportKind::Tls => "tls",
        })
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.why)
    }
}

/// One end of a connection, polled by the one thread that owns it. It may move to another thread,
/// but two cannot use it at once, so nothing in it is locked.
#[derive(Debug)]
pub struct Port {
    inbox: Inbox,
    out: Outbound,
    transport: Transport,
    peer: String,
    write_wait: Duration,
    /// Whether both ends are in this process.
    within_process: bool,
    /// Whether frames were left in the inbox because the backlog was full.
    left_over: bool,
    ended: bool,
}

impl Port {
    pub(crate) fn new(link: Link, options: &PortOptions, peer: String, why: &str) -> Port {
        let kind = match &link {
            Link::Unix(_) => TransportKind::Unix,
            Link::Tcp(_) => TransportKind::Tcp,
            Link::Tls(_) => TransportKind::Tls,
            Link::Ring(_) => TransportKind::Ring,
        };
        Port {
            inbox: Inbox::new(options.most_body_bytes),
            out: Outbound::new(link, options.outbox_bytes),
            transport: Transport {
                kind,
                why: why.to_owned(),
            },
            peer,
            write_wait: options.write_wait,
            within_process: false,
            left_over: false,
            ended: false,
        }
    }

    /// What it travels on, and why.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The address of the other end, for messages.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Sends a frame whose body is these parts. It goes out with the next [`Port::flush`] or
    /// [`Port::poll`], together with others.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), SendError> {
        if self.ended {
            Err(SendError::Ended)
        } else {
            self.out.send(head, parts)
        }
    }

    /// Replaces [`PortOptions::outbox_bytes`], so that the two ends of a [`Port::pair`] can have
    /// different limits.
    pub fn set_outbox_bytes(&mut self, outbox_bytes: usize) {
        self.out.set_most_bytes(outbox_bytes);
    }

    /// Whether both ends are in this process.
    pub(crate) fn is_within_process(&self) -> bool {
        self.within_process
    }

    /// Refuses bodies of more than this from the next frame on.
    pub(crate) fn set_most_body_bytes(&mut self, most_body_bytes: usize) {
        self.inbox.set_most_body_bytes(most_body_bytes);
    }

    /// Bytes that wait in this process for the peer to make room.
    pub fn waiting_bytes(&self) -> usize {
        self.out.waiting_bytes()
    }

    /// Memory of its buffers beyond that of a connection without traffic.
    pub(crate) fn held_bytes(&self) -> usize {
        self.inbox.held_bytes() + self.out.held_bytes()
    }

    /// Gives the memory of empty buffers back.
    pub(crate) fn shrink(&mut self) {
        self.inbox.shrink();
        self.out.shrink();
    }

    /// Hands on what was sent, as much as possible now, and returns whether that was all. An error
    /// ends the connection; so does a peer that reads nothing for longer than
    /// [`PortOptions::write_wait`].
    pub fn flush(&mut self) -> Result<bool, Closed> {
        if self.ended {
            return Err(Closed::Peer);
        }
        if !self.out.is_pending() && self.out.failed.is_none() {
            return Ok(true);
        }
        match self.out.flush(self.write_wait) {
            Ok(Some(all)) => Ok(all),
            Ok(None) => self.end(Closed::Stuck),
            Err(error) => self.fail(error),
        }
    }

    /// Reads once, passes every whole frame to `on_frame` together with the place for answers, and
    /// flushes. Returns the number of frames. Nothing is read while the backlog is full.
    ///
    /// # Errors
    /// An error ends the connection for good: [`Closed::Service`] if `on_frame` broke off.
    pub fn poll(
        &mut self,
        mut on_frame: impl FnMut(FrameRef<'_>, &mut Outbound) -> ControlFlow<()>,
    ) -> Result<usize, Closed> {
        if self.out.is_pending() {
            self.flush()?;
        }
        if self.ended {
            return Err(Closed::Peer);
        }
        let mut count = 0;
        if self.left_over && !self.deliver(&mut on_frame, &mut count)? {
            return Ok(count);
        }
        if self.out.is_full() {
            // Nothing is read now, so the end of the peer must be looked for in another way.
            return if self.out.link.is_gone() {
                self.end(Closed::Peer)
            } else {
                Ok(count)
            };
        }
        let read = match self.out.link.read(self.inbox.space()) {
            Ok(read) => read,
            Err(error) => return self.fail(error),
        };
        match read {
            None => return Ok(count),
            Some(0) => {
                let why = self
                    .inbox
                    .at_end()
                    .map_or_else(Closed::Frame, |()| Closed::Peer);
                return self.end(why);
            }
            Some(bytes) => self.inbox.filled(bytes),
        }
        self.deliver(&mut on_frame, &mut count)?;
        self.flush()?;
        Ok(count)
    }

    /// Passes on the frames that are whole. Returns false if some are left because the backlog is
    /// full.
    fn deliver(
        &mut self,
        on_frame: &mut impl FnMut(FrameRef<'_>, &mut Outbound) -> ControlFlow<()>,
        count: &mut usize,
    ) -> Result<bool, Closed> {
        loop {
            if self.out.is_full() {
                // A frame whose answer would not fit stays in the inbox: this is how a peer that
                // sends requests and reads no answers is slowed down instead of filling our memory.
                self.left_over = true;
                self.flush()?;
                if self.out.is_full() {
                    return Ok(false);
                }
            }
            match self.inbox.next_frame() {
                Ok(Some(frame)) => {
                    *count += 1;
                    if on_frame(frame, &mut self.out).is_break() {
                        return self.end(Closed::Service);
                    }
                }
                Ok(None) => {
                    self.left_over = false;
                    return Ok(true);
                }
                Err(error) => return self.end(Closed::Frame(error)),
            }
        }
    }

    fn fail<T>(&mut self, error: LinkError) -> Result<T, Closed> {
        self.end(match error {
            LinkError::Io(error) => Closed::Io(error),
            LinkError::Ring(error) => Closed::Ring(error),
        })
    }

    fn end<T>(&mut self, why: Closed) -> Result<T, Closed> {
        self.ended = true;
        Err(why)
    }

    /// For a connection that the service has ended: hands on what still waits, and returns whether
    /// nothing is left to do.
    pub(crate) fn drain(&mut self) -> bool {
        !self.out.is_pending()
            || self.out.link.is_gone()
            || !matches!(self.out.flush(self.write_wait), Ok(Some(false)))
    }

    /// Sleeps until there is something to read, or room for what waits; at most `wait`. For an
    /// owner of one connection; a [`crate::Reactor`] sleeps over all of its own.
    pub fn sleep(&mut self, wait: Duration) -> Result<(), Closed> {
        match self.announce_sleep() {
            Ok(true) => {
                let interest = self.interest();
                let slept = wait_one(self.descriptor(), interest, wait.min(MOST_SLEEP));
                self.out.link.woke();
                self.out.link.event();
                slept.or_else(|error| self.fail(error.into()))
            }
            Ok(false) => {
                self.out.link.woke();
                Ok(())
            }
            Err(error) => self.fail(error),
        }
    }

    /// Polls until a pass brings frames: spins for `spin`, then sleeps. Returns their number, 0 if
    /// `wait` has passed.
    pub fn wait(
        &mut self,
        spin: Duration,
        wait: Duration,
        mut on_frame: impl FnMut(FrameRef<'_>, &mut Outbound) -> ControlFlow<()>,
    ) -> Result<usize, Closed> {
        let began = Instant::now();
        loop {
            for _ in 0..LOOKS {
                match self.poll(&mut on_frame)? {
                    0 => std::hint::spin_loop(),
                    count => return Ok(count),
                }
            }
            let waited = began.elapsed();
            if waited >= wait {
                return Ok(0);
            }
            if waited >= spin {
                self.sleep(wait - waited)?;
            }
        }
    }

    pub(crate) fn announce_sleep(&mut self) -> Result<bool, LinkError> {
        let (reads, blocked) = (self.reads(), self.out.is_blocked());
        if self.left_over && reads {
            return Ok(false);
        }
        self.out.link.announce_sleep(reads, blocked)
    }

    pub(crate) fn woke(&mut self) {
        self.out.link.woke();
    }

    pub(crate) fn event(&mut self) {
        self.out.link.event();
    }

    /// Whether a pass has something to do that no event reports.
    pub(crate) fn wants_poll(&self) -> bool {
        self.out.is_pending() || self.left_over || self.out.link.has_more()
    }

    fn reads(&self) -> bool {
        !self.ended && !self.out.is_full()
    }

    pub(crate) fn is_ring(&self) -> bool {
        self.transport.kind == TransportKind::Ring
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.out.link.descriptor()
    }

    /// What its descriptor is watched for. A ring's bell only ever reports bytes.
    pub(crate) fn interest(&self) -> Interest {
        if self.is_ring() {
            Interest {
                read: true,
                write: false,
            }
        } else {
            Interest {
                read: self.reads(),
                write: self.out.is_blocked(),
            }
        }
    }
}
