//! From an address to a polled connection, and from TCP to a ring if both ends are on one host.

use std::io;
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection};

use super::inbox::Inbox;
use super::sleep::{Interest, wait_one};
use super::{Link, Port, PortOptions, RingLink, TlsLink, is_later};
use crate::discovery::{self, ANSWER, DISCOVER, JOIN, Offer};
use crate::ring::{RingEnd, pass};
use crate::{Address, Head, NetError, Stream, encode};

/// The longest answer of a server during discovery.
const MOST_ANSWER: usize = 1024;

/// Why there is no ring, and whether the connection can be used without one.
enum NoRing {
    GoesOn(String),
    Broken(String),
}

impl Port {
    /// Connects to `address`. With [`PortOptions::ring`] the server is asked for a ring, and the
    /// connection moves there if both ends are on one host; if not, it stays where it is.
    /// [`Port::transport`] says which, and why. This call waits, at most
    /// [`PortOptions::connect_wait`] for each connection that it tries.
    pub fn connect(address: &Address, options: &PortOptions) -> Result<Port, NetError> {
        if !options.ring {
            return plain(address, options, "a ring was not wanted");
        }
        let mut port = plain(address, options, "")?;
        let end = Instant::now() + options.connect_wait;
        let why = match discover(&mut port, end) {
            Ok(offer) => match join(&offer, address, options, end) {
                Ok(port) => return Ok(port),
                Err(why) => why,
            },
            Err(NoRing::GoesOn(why)) => why,
            // A server that does not know the verb hangs up. It gets a new connection, on which it
            // is not asked again.
            Err(NoRing::Broken(why)) => return plain(address, options, &why),
        };
        port.transport.why = why;
        Ok(port)
    }

    /// Makes the two ends of a ring within this process. What they hold does not count against
    /// [`crate::ReactorOptions::most_held_bytes`].
    pub fn pair(ring_bytes: u32, options: &PortOptions) -> Result<(Port, Port), NetError> {
        let failed = |source| NetError::Ring {
            address: "this process".to_owned(),
            source,
        };
        let (one, other) = RingEnd::pair(ring_bytes).map_err(failed)?;
        let broken = |error| NetError::io("make a bell in", "this process", error);
        let (bell, far_bell) = UnixStream::pair().map_err(broken)?;
        let port = |end, bell| -> Result<Port, NetError> {
            let link = RingLink::new(end, bell).map_err(broken)?;
            let peer = "this process".to_owned();
            let why = "both ends are in one process";
            let mut port = Port::new(Link::Ring(Box::new(link)), options, peer, why);
            port.within_process = true;
            Ok(port)
        };
        Ok((port(one, bell)?, port(other, far_bell)?))
    }
}

fn plain(address: &Address, options: &PortOptions, why: &str) -> Result<Port, NetError> {
    let failed = |error| NetError::io("connect to", address, error);
    let link = match (Stream::connect(address, options.connect_wait)?, address) {
        (Stream::Tcp(socket), Address::Tcp { host, .. }) => {
            socket.set_nonblocking(true).map_err(failed)?;
            match &options.tls {
                Some(config) => tls(socket, config, host, options.connect_wait).map_err(failed)?,
                None => Link::Tcp(socket),
            }
        }
        (Stream::Unix(socket), _) => {
            socket.set_nonblocking(true).map_err(failed)?;
            Link::Unix(socket)
        }
        // A connection is always of the kind of its address.
        _ => return Err(failed(io::ErrorKind::Unsupported.into())),
    };
    Ok(Port::new(link, options, address.to_string(), why))
}

fn tls(
    socket: TcpStream,
    config: &Arc<ClientConfig>,
    host: &str,
    wait: Duration,
) -> io::Result<Link> {
    let name = rustls::pki_types::ServerName::try_from(host.to_owned())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let broken = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let state = ClientConnection::new(Arc::clone(config), name).map_err(broken)?;
    let mut link = TlsLink::new(socket, state.into());
    let end = Instant::now() + wait;
    while !link.shake_hands()? {
        let left = left_until(end)?;
        wait_one(link.descriptor(), link.interest(), left)?;
    }
    Ok(Link::Tls(Box::new(link)))
}

/// Asks the server for an offer of a ring.
fn discover(port: &mut Port, end: Instant) -> Result<Offer, NoRing> {
    let broken = |error: String| NoRing::Broken(format!("the server offers no ring: {error}"));
    let head = Head {
        verb: DISCOVER,
        flags: 0,
        request: 0,
    };
    port.send(head, &[&discovery::discover_request()])
        .map_err(|error| broken(error.to_string()))?;
    let mut answer = None;
    while answer.is_none() {
        let wait = left_until(end).map_err(|error| broken(error.to_string()))?;
        port.wait(Duration::ZERO, wait, |frame, _| {
            if frame.head.verb == DISCOVER && frame.head.flags & ANSWER != 0 {
                answer = Some(discovery::read_discover_answer(frame.body));
                return ControlFlow::Continue(());
            }
            ControlFlow::Break(())
        })
        .map_err(|why| broken(format!("{why:?}")))?;
    }
    answer
        .unwrap_or_else(|| Err("no answer".to_owned()))
        .map_err(NoRing::GoesOn)
}

/// Takes the offer up; the error says why that is impossible.
fn join(
    offer: &Offer,
    address: &Address,
    options: &PortOptions,
    end: Instant,
) -> Result<Port, String> {
    let another_host = |error: io::Error| match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            "the server is on another host (or in another network namespace)".to_owned()
        }
        _ => format!("the server's ring cannot be reached: {error}"),
    };
    let socket = pass::connect_abstract(&offer.name).map_err(another_host)?;
    let broken = |error: &dyn std::fmt::Display| format!("the ring was not handed over: {error}");
    let fd = ask_to_join(&socket, offer, end).map_err(|error| broken(&error))??;
    let ring = RingEnd::open(fd, options.most_ring_bytes).map_err(|error| broken(&error))?;
    let link = RingLink::new(ring, socket).map_err(|error| broken(&error))?;
    let why = "both ends are on one host";
    Ok(Port::new(
        Link::Ring(Box::new(link)),
        options,
        address.to_string(),
        why,
    ))
}

fn ask_to_join(
    socket: &UnixStream,
    offer: &Offer,
    end: Instant,
) -> io::Result<Result<OwnedFd, String>> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut request = Vec::new();
    let head = Head {
        verb: JOIN,
        flags: 0,
        request: 0,
    };
    encode(head, &offer.nonce, &mut request).map_err(invalid)?;
    // The buffer of a new socket holds so few bytes, so this write does not block.
    io::Write::write_all(&mut &*socket, &request)?;
    let mut inbox = Inbox::new(MOST_ANSWER);
    let mut fds = Vec::new();
    loop {
        match pass::receive_with_fds(socket, inbox.space(), &mut fds) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => inbox.filled(count),
            Err(error) if is_later(&error) => {
                let interest = Interest {
                    read: true,
                    write: false,
                };
                wait_one(std::os::fd::AsFd::as_fd(socket), interest, left_until(end)?)?;
            }
            Err(error) => return Err(error),
        }
        if let Some(frame) = inbox.next_frame().map_err(invalid)? {
            let answer = discovery::read_join_answer(frame.body);
            return Ok(answer.and_then(|()| fds.pop().ok_or("no memory came".to_owned())));
        }
    }
}

fn left_until(end: Instant) -> io::Result<Duration> {
    end.checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
        .ok_or_else(|| io::ErrorKind::TimedOut.into())
}
