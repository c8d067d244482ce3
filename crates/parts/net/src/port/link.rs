//! What a polled connection travels on. Nothing here waits: what cannot be done now says
//! `WouldBlock`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::sleep::Interest;
use crate::ring::{RingEnd, RingError, Wake};

/// A ring that brought nothing this many times in a row has its socket looked at: the peer may be
/// dead.
const LOOKS: u32 = 4096;
/// Bytes on a bell socket that are taken at once, and how often: a peer that floods it gains
/// nothing.
const BELL_BYTES: usize = 256;
const BELL_READS: usize = 4;

/// A connection's carrier, not blocking.
#[derive(Debug)]
pub enum Link {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<TlsLink>),
    Ring(Box<RingLink>),
}

/// What reading or writing met.
#[derive(Debug)]
pub enum LinkError {
    Io(io::Error),
    Ring(RingError),
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> LinkError {
        LinkError::Io(error)
    }
}

impl From<RingError> for LinkError {
    fn from(error: RingError) -> LinkError {
        LinkError::Ring(error)
    }
}

impl Link {
    /// Reads what is there. None: nothing now. 0: the peer has ended the connection.
    pub fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self {
            Link::Unix(socket) => Ok(now(socket.read(into))?),
            Link::Tcp(socket) => Ok(now(socket.read(into))?),
            Link::Tls(link) => Ok(now(link.read(into))?),
            Link::Ring(link) => Ok(link.read(into)?),
        }
    }

    /// Writes what it takes now, perhaps nothing.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, LinkError> {
        let written = match self {
            Link::Unix(socket) => now(socket.write(bytes))?,
            Link::Tcp(socket) => now(socket.write(bytes))?,
            Link::Tls(link) => now(link.write(bytes))?,
            Link::Ring(link) => return Ok(link.end.sender.write(bytes)?),
        };
        match written {
            Some(0) if !bytes.is_empty() => Err(io::Error::from(io::ErrorKind::WriteZero).into()),
            written => Ok(written.unwrap_or(0)),
        }
    }

    /// Shows the peer what was written, or hands the system what lies between.
    pub fn flush(&mut self) -> Result<(), LinkError> {
        match self {
            Link::Unix(_) | Link::Tcp(_) => {}
            Link::Tls(link) => link.send()?,
            Link::Ring(link) => link.publish(),
        }
        Ok(())
    }

    /// Whether something written has yet to be handed to the system.
    pub fn holds_back(&self) -> bool {
        match self {
            Link::Tls(link) => link.state.wants_write(),
            _ => false,
        }
    }

    /// The descriptor that tells of events: the bell of a ring.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Link::Unix(socket) => socket.as_fd(),
            Link::Tcp(socket) => socket.as_fd(),
            Link::Tls(link) => link.descriptor(),
            Link::Ring(link) => link.bell.as_fd(),
        }
    }

    /// The descriptor has something to tell.
    pub fn event(&mut self) {
        if let Link::Ring(link) = self {
            link.answer_bell();
        }
    }

    /// Whether bytes are here that no event tells of.
    pub fn has_more(&self) -> bool {
        match self {
            Link::Tls(link) => link.more,
            _ => false,
        }
    }

    /// Whether the process at the other end of a ring is gone.
    pub fn is_gone(&self) -> bool {
        match self {
            Link::Ring(link) => link.gone,
            _ => false,
        }
    }

    /// Says that this end is about to sleep until there are bytes, or room if `for_room`. False:
    /// there is something to do now.
    pub fn announce_sleep(&mut self, for_bytes: bool, for_room: bool) -> Result<bool, LinkError> {
        match self {
            Link::Unix(_) | Link::Tcp(_) => Ok(true),
            Link::Tls(link) => Ok(!(for_bytes && link.more)),
            Link::Ring(link) => {
                let idle = !for_bytes || link.end.receiver.announce_sleep()?;
                let full = !for_room || link.end.sender.announce_sleep()?;
                Ok(idle && full && !link.gone)
            }
        }
    }

    /// Takes the announcement back.
    pub fn woke(&mut self) {
        if let Link::Ring(link) = self {
            link.end.receiver.woke();
            link.end.sender.woke();
        }
    }
}

/// A pair of rings, and the socket over which they were handed: it wakes who sleeps, and tells when
/// the other process is gone.
#[derive(Debug)]
pub struct RingLink {
    end: RingEnd,
    bell: UnixStream,
    /// The other end has closed the socket, or has died.
    gone: bool,
    idle: u32,
}

impl RingLink {
    pub fn new(end: RingEnd, bell: UnixStream) -> io::Result<RingLink> {
        bell.set_nonblocking(true)?;
        Ok(RingLink {
            end,
            bell,
            gone: false,
            idle: 0,
        })
    }

    /// Room in the ring, looked up again when less than `wanted` bytes are known of.
    pub fn room(&mut self, wanted: usize) -> Result<usize, RingError> {
        self.end.sender.room(wanted)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, RingError> {
        let (count, wake) = self.end.receiver.read(into)?;
        self.wake(wake);
        if count > 0 {
            self.idle = 0;
            return Ok(Some(count));
        }
        self.idle = self.idle.wrapping_add(1);
        if self.idle.is_multiple_of(LOOKS) {
            self.answer_bell();
        }
        if !self.gone {
            return Ok(None);
        }
        // What the peer published before it went is still there, perhaps only since the look above.
        let (count, _) = self.end.receiver.read(into)?;
        Ok(Some(count))
    }

    fn publish(&mut self) {
        let wake = self.end.sender.publish();
        self.wake(wake);
    }

    fn wake(&mut self, wake: Wake) {
        if wake == Wake::Bell {
            // A socket that takes no more has unread bytes in it: that wakes as well. One that is
            // gone is noticed by reading.
            let _ = (&self.bell).write(&[1]);
        }
    }

    fn answer_bell(&mut self) {
        let mut bytes = [0; BELL_BYTES];
        for _ in 0..BELL_READS {
            match now((&self.bell).read(&mut bytes)) {
                Ok(Some(BELL_BYTES)) => {}
                Ok(Some(0)) | Err(_) => {
                    self.gone = true;
                    return;
                }
                Ok(_) => return,
            }
        }
    }
}

/// TLS on a socket that does not block.
#[derive(Debug)]
pub struct TlsLink {
    socket: TcpStream,
    state: rustls::Connection,
    /// The last read filled all it was given: there may be more in the state, which no event tells
    /// of.
    more: bool,
}

impl TlsLink {
    pub fn new(socket: TcpStream, state: rustls::Connection) -> TlsLink {
        TlsLink {
            socket,
            state,
            more: false,
        }
    }

    /// Goes on with the handshake. True: it is done.
    pub fn shake_hands(&mut self) -> io::Result<bool> {
        self.send()?;
        while self.state.is_handshaking() {
            match now(self.state.read_tls(&mut self.socket))? {
                None => break,
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(_) => self.process()?,
            }
        }
        Ok(!self.state.is_handshaking())
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What the handshake waits for.
    pub fn interest(&self) -> Interest {
        Interest {
            read: true,
            write: self.state.wants_write(),
        }
    }

    fn process(&mut self) -> io::Result<()> {
        if let Err(error) = self.state.process_new_packets() {
            // The peer is told why, if it can be.
            let _ = self.send();
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        self.send()
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.state.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.more = false,
                Ok(count) => {
                    self.more = count == into.len();
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
            if self.state.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            self.process()?;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send()?;
        if self.state.wants_write() || self.state.is_handshaking() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = self.state.writer().write(bytes)?;
        self.send()?;
        Ok(count)
    }

    fn send(&mut self) -> io::Result<()> {
        while self.state.wants_write() {
            if now(self.state.write_tls(&mut self.socket))?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// None for what would block.
fn now(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if is_later(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an operation only has to be tried again.
pub fn is_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
