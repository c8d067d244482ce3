//! The socket where clients on this host get their rings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use crate::discovery::{ANSWER, JOIN, Offer, Offers, join_answer};
use crate::port::sleep::{Epoll, Interest};
use crate::port::{CoarseInstant, Inbox, Link, RingLink, coarse_now, is_later};
use crate::ring::{RingEnd, pass};
use crate::{Head, Port, PortOptions, encode};

/// Clients that have connected and not yet shown their nonce; a further one is turned away.
const MOST_JOINING: usize = 64;
/// The longest request to join.
const MOST_REQUEST: usize = 64;

/// An abstract Unix socket that hands a ring to a client that brings the nonce of an offer.
#[derive(Debug)]
pub struct RingListener {
    listener: UnixListener,
    offers: Offers,
    joining: Vec<Joining>,
    wait: Duration,
}

#[derive(Debug)]
struct Joining {
    socket: UnixStream,
    inbox: Inbox,
    until: CoarseInstant,
}

impl RingListener {
    /// Opens one under a new name. Offers and connected clients expire after `wait`.
    pub fn open(wait: Duration) -> io::Result<RingListener> {
        let offers = Offers::new(wait)?;
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(offers.name())?)?;
        listener.set_nonblocking(true)?;
        Ok(RingListener {
            listener,
            offers,
            joining: Vec::new(),
            wait,
        })
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    pub fn offer(&mut self) -> io::Result<Offer> {
        self.offers.make()
    }

    /// Whether a client has connected that has not been answered.
    pub fn is_busy(&self) -> bool {
        !self.joining.is_empty()
    }

    /// Continues with all clients that have connected, and returns the connections that are made
    /// now. Waiting clients are watched by `epoll` under `key`. At most `free` rings are made.
    pub fn join(
        &mut self,
        epoll: &Epoll,
        key: u64,
        options: &PortOptions,
        ring_bytes: u32,
        mut free: usize,
    ) -> Vec<Port> {
        self.accept(epoll, key, options);
        let mut joined = Vec::new();
        let now = coarse_now();
        let mut at = 0;
        while let Some(joining) = self.joining.get_mut(at) {
            let nonce = match read_nonce(joining) {
                Ok(None) if joining.until >= now => {
                    at += 1;
                    continue;
                }
                Ok(nonce) => nonce,
                Err(_) => None,
            };
            let Joining { socket, .. } = self.joining.swap_remove(at);
            // A client that brings nothing in time, or an invalid nonce, is hung up on.
            if !nonce.is_some_and(|nonce| self.offers.redeem(&nonce)) {
                continue;
            }
            let _ = epoll.remove(socket.as_fd());
            if let Some(port) = hand_over(socket, options, ring_bytes, free) {
                free = free.saturating_sub(1);
                joined.push(port);
            }
        }
        joined
    }

    fn accept(&mut self, epoll: &Epoll, key: u64, options: &PortOptions) {
        let reads = Interest {
            read: true,
            write: false,
        };
        // A failure here ends only the client's connection, which the client sees.
        while let Ok((socket, _)) = self.listener.accept() {
            if self.joining.len() >= MOST_JOINING
                || socket.set_nonblocking(true).is_err()
                || epoll.add(socket.as_fd(), key, reads).is_err()
            {
                continue;
            }
            self.joining.push(Joining {
                socket,
                inbox: Inbox::new(MOST_REQUEST.min(options.most_body_bytes)),
                until: coarse_now().after(self.wait),
            });
        }
    }
}

/// The nonce that a client shows; `None` if it has not come yet.
fn read_nonce(joining: &mut Joining) -> io::Result<Option<Vec<u8>>> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    match io::Read::read(&mut &joining.socket, joining.inbox.space()) {
        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(count) => joining.inbox.filled(count),
        Err(error) if is_later(&error) => {}
        Err(error) => return Err(error),
    }
    match joining.inbox.next_frame().map_err(invalid)? {
        None => Ok(None),
        Some(frame) if frame.head.verb == JOIN => Ok(Some(frame.body.to_vec())),
        Some(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Makes a ring and hands it over. `None` if that failed; the client is told why if possible.
fn hand_over(
    socket: UnixStream,
    options: &PortOptions,
    ring_bytes: u32,
    free: usize,
) -> Option<Port> {
    let head = Head {
        verb: JOIN,
        flags: ANSWER,
        request: 0,
    };
    let made = match free {
        0 => Err("the server has no ring left".to_owned()),
        _ => RingEnd::make(ring_bytes).map_err(|error| error.to_string()),
    };
    let mut answer = Vec::new();
    let body = join_answer(made.as_ref().map(drop).map_err(String::as_str));
    encode(head, &body, &mut answer).ok()?;
    match made {
        Ok((end, fd)) => {
            let sent = pass::send_with_fd(&socket, &answer, fd.as_fd()).ok()?;
            // The buffer of a new socket holds so few bytes, so a short write means that something
            // is wrong.
            if sent != answer.len() {
                return None;
            }
            let link = RingLink::new(end, socket).ok()?;
            let peer = "a local process".to_owned();
            let why = "both ends are on one host";
            Some(Port::new(Link::Ring(Box::new(link)), options, peer, why))
        }
        Err(_) => {
            // The client goes on without a ring whether it reads this or not.
            let _ = io::Write::write_all(&mut &socket, &answer);
            None
        }
    }
}
