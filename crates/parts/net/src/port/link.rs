//! What a polled connection travels on. Nothing here waits: a call that cannot proceed returns
//! `WouldBlock`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::sleep::Interest;
use crate::ring::{RingEnd, RingError, Wake};

/// After this many reads of a ring that brought nothing, its socket is checked: the peer may be
/// dead.
const LOOKS: u32 = 4096;
/// How much is read from a bell socket at once, and how often, so that a peer that floods it gains
/// nothing.
const BELL_BYTES: usize = 256;
const BELL_READS: usize = 4;

/// The transport of a connection, in non-blocking mode.
#[derive(Debug)]
pub enum Link {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<TlsLink>),
    Ring(Box<RingLink>),
}

/// Why a read or a write failed.
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
    /// Reads what is there; `None` if nothing is now, 0 if the peer has ended the connection.
    pub fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self {
            Link::Unix(socket) => Ok(now(socket.read(into))?),
            Link::Tcp(socket) => Ok(now(socket.read(into))?),
            Link::Tls(link) => Ok(now(link.read(into))?),
            Link::Ring(link) => Ok(link.read(into)?),
        }
    }

    /// Writes as much as it can now, which may be nothing.
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

    /// Shows the peer what was written, or hands to the system what TLS still holds.
    pub fn flush(&mut self) -> Result<(), LinkError> {
        match self {
            Link::Unix(_) | Link::Tcp(_) => {}
            Link::Tls(link) => link.send()?,
            Link::Ring(link) => link.publish(),
        }
        Ok(())
    }

    /// Whether something that was written is not handed to the system yet.
    pub fn holds_back(&self) -> bool {
        match self {
            Link::Tls(link) => link.state.wants_write(),
            _ => false,
        }
    }

    /// The descriptor that reports events; for a ring that of its bell.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Link::Unix(socket) => socket.as_fd(),
            Link::Tcp(socket) => socket.as_fd(),
            Link::Tls(link) => link.descriptor(),
            Link::Ring(link) => link.bell.as_fd(),
        }
    }

    /// Handles an event of the descriptor.
    pub fn event(&mut self) {
        if let Link::Ring(link) = self {
            link.answer_bell();
        }
    }

    /// Whether bytes are here that no event will report.
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

    /// Announces that this end is about to sleep until bytes come, or until there is room if
    /// `for_room`. Returns false if there is something to do now.
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

    /// Withdraws the announcement after a sleep.
    pub fn woke(&mut self) {
        if let Link::Ring(link) = self {
            link.end.receiver.woke();
            link.end.sender.woke();
        }
    }
}

/// A pair of rings, and the socket over which they were handed over. The socket wakes a sleeper,
/// and tells when the other process is gone.
#[derive(Debug)]
pub struct RingLink {
    end: RingEnd,
    bell: UnixStream,
    /// Whether the other end has closed the socket, or has died.
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

    /// Room in the ring, looked up again only if less than `wanted` bytes are known to be free.
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
        // What the peer published before it ended is still there, perhaps only since the look
        // above, so one more read must find nothing before the end is reported.
        let (count, _) = self.end.receiver.read(into)?;
        Ok(Some(count))
    }

    fn publish(&mut self) {
        let wake = self.end.sender.publish();
        self.wake(wake);
    }

    fn wake(&mut self, wake: Wake) {
        if wake == Wake::Bell {
            // A full socket has unread bytes in it, which wake the peer as well. A socket whose
            // peer is gone is noticed by reading.
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
    /// Whether the last read filled its buffer: then more may be decrypted already, which no event
    /// reports.
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

    /// Continues the handshake, and returns whether it is done.
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

    /// The events that the handshake waits for.
    pub fn interest(&self) -> Interest {
        Interest {
            read: true,
            write: self.state.wants_write(),
        }
    }

    fn process(&mut self) -> io::Result<()> {
        if let Err(error) = self.state.process_new_packets() {
            // The alert tells the peer why; if it cannot be sent, the connection ends all the same.
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
        // More plaintext is accepted only once the handshake is done and all records are sent:
        // otherwise TLS would buffer without a bound for a peer that does not read.
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

/// Turns `WouldBlock` into `None`.
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
