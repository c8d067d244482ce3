//! The sockets that frames travel on, listening and connected: Unix sockets, TCP, and TLS over TCP.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SendFlags, sockopt};
use rustls::{ClientConfig, ServerConfig, ServerConnection};

use crate::port::{Link, TlsLink, is_later};
use crate::tls::TlsStream;
use crate::unix::{self, BoundListener};
use crate::{Address, NetError};

/// How long a peer of TCP may be silent before the system probes it.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// The time between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Probes without an answer after which the system ends the connection.
const KEEPALIVE_PROBES: u32 = 6;

/// A connected socket whose calls wait. Clones are the same connection, so one thread can read
/// while another writes.
#[derive(Debug)]
pub enum Stream {
    /// A connection over a Unix socket, within this machine.
    Unix(UnixStream),
    /// A connection over TCP in the clear, with TCP_NODELAY and keepalive probes.
    Tcp(TcpStream),
    /// A connection in TLS over TCP, with TCP_NODELAY and keepalive probes.
    Tls(TlsStream),
}

impl Stream {
    /// Connects to `address`. Every address that a host name stands for is tried. A listener that
    /// accepts nothing, even at a Unix socket, is waited for no longer than `timeout`.
    pub fn connect(address: &Address, timeout: Duration) -> Result<Stream, NetError> {
        let failed = |error| NetError::io("connect to", address, error);
        match address {
            Address::Unix(path) => unix::connect(path, timeout)
                .map(Stream::Unix)
                .map_err(failed),
            Address::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                for place in (host.as_str(), *port).to_socket_addrs().map_err(failed)? {
                    match TcpStream::connect_timeout(&place, timeout) {
                        Ok(stream) => {
                            prepare(&stream).map_err(failed)?;
                            return Ok(Stream::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(failed(last))
            }
        }
    }

    /// Connects in TLS, for an address of TCP. A Unix socket needs none, and stays in the clear.
    pub fn connect_tls(
        address: &Address,
        timeout: Duration,
        config: Arc<ClientConfig>,
    ) -> Result<Stream, NetError> {
        let failed = |error| NetError::io("connect in TLS to", address, error);
        match (Stream::connect(address, timeout)?, address) {
            (Stream::Tcp(socket), Address::Tcp { host, .. }) => {
                socket.set_read_timeout(Some(timeout)).map_err(failed)?;
                let stream = TlsStream::client(socket, config, host).map_err(failed)?;
                stream.socket().set_read_timeout(None).map_err(failed)?;
                Ok(Stream::Tls(stream))
            }
            (plain, _) => Ok(plain),
        }
    }

    /// Begins TLS, as the listening end, on a connection of TCP that was in the clear so far. The
    /// handshake happens with the first read or write; clones made before stay in the clear.
    pub fn accept_tls(self, config: Arc<ServerConfig>) -> io::Result<Stream> {
        match self {
            Stream::Tcp(socket) => Ok(Stream::Tls(TlsStream::server(socket, config)?)),
            Stream::Unix(_) | Stream::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Another handle on the same connection.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Tls(stream) => Stream::Tls(stream.clone()),
        })
    }

    /// Ends both directions; reads and writes on every clone return. A connection that has ended
    /// stays so.
    pub fn shutdown(&self) {
        // The only failure is that the connection has ended already, which is what is wanted.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tls(stream) => stream.socket().shutdown(Shutdown::Both),
        };
    }

    /// Ends only reading: readers get what has come, then the end; writing goes on. Over TCP Linux
    /// also hands out what still comes, so the peer must not decide alone when reading ends.
    pub fn shutdown_read(&self) {
        // As in `shutdown`.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Read),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Read),
            Stream::Tls(stream) => stream.socket().shutdown(Shutdown::Read),
        };
    }

    /// How long a read may wait; `None` sets no limit.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Tls(stream) => stream.socket().set_read_timeout(timeout),
        }
    }

    /// How long a write may wait without any progress; `None` sets no limit.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_write_timeout(timeout),
            Stream::Tcp(stream) => stream.set_write_timeout(timeout),
            Stream::Tls(stream) => stream.socket().set_write_timeout(timeout),
        }
    }

    /// Writes what the socket takes without waiting. Nothing is written in TLS, whose state another
    /// thread may hold.
    pub(crate) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(_) | Stream::Tcp(_) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                Ok(rustix::net::send(self.descriptor(), bytes, flags)?)
            }
            Stream::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// The descriptor of the socket, that of TCP for TLS.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.socket().as_fd(),
        }
    }

    /// The other end, for messages.
    pub fn peer(&self) -> String {
        match self {
            Stream::Unix(_) => "a local process".to_owned(),
            Stream::Tcp(stream) => peer_of(stream),
            Stream::Tls(stream) => peer_of(stream.socket()),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(into),
            Stream::Tcp(stream) => stream.read(into),
            Stream::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).write(bytes),
            Stream::Tcp(stream) => (&*stream).write(bytes),
            Stream::Tls(stream) => stream.clone().write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).write_vectored(parts),
            Stream::Tcp(stream) => (&*stream).write_vectored(parts),
            Stream::Tls(stream) => stream.clone().write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Unix(_) | Stream::Tcp(_) => Ok(()),
            Stream::Tls(stream) => stream.clone().flush(),
        }
    }
}

/// A socket at which connections arrive. The file of a Unix socket goes away with it, unless
/// another listener has taken the path meanwhile.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
    address: Address,
    tls: Option<Arc<ServerConfig>>,
}

/// Sets the options that every connection of TCP has: nothing is held back to be sent with more,
/// and the system probes a peer that is silent.
fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    // A peer whose machine lost power or network says nothing, just as one that has nothing to say.
    // Without probes an idle connection to it would keep its place until this process ends.
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)?;
    Ok(sockopt::set_socket_keepalive(socket, true)?)
}

fn peer_of(socket: &TcpStream) -> String {
    match socket.peer_addr() {
        Ok(address) => address.to_string(),
        Err(_) => "a peer that has gone".to_owned(),
    }
}

#[derive(Debug)]
enum Kind {
    Unix(BoundListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at `address`. The socket file of a dead listener is replaced. An ordinary file at
    /// the path, and the socket of a living listener however busy it is, stay as they are and are
    /// an error.
    pub fn bind(address: &Address) -> Result<Listener, NetError> {
        let failed = |error| NetError::io("listen at", address, error);
        match address {
            Address::Unix(path) => Ok(Listener {
                kind: Kind::Unix(BoundListener::bind(path).map_err(failed)?),
                address: address.clone(),
                tls: None,
            }),
            Address::Tcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port)).map_err(failed)?;
                let port = listener.local_addr().map_err(failed)?.port();
                Ok(Listener {
                    kind: Kind::Tcp(listener),
                    address: Address::Tcp {
                        host: host.clone(),
                        port,
                    },
                    tls: None,
                })
            }
        }
    }

    /// The same listener with TLS, if it is one of TCP.
    pub fn with_tls(mut self, config: Arc<ServerConfig>) -> Listener {
        self.tls = Some(config);
        self
    }

    /// The address, with the port that the system chose if it was 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Makes [`Listener::accept_now`], and accept, return at once.
    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match &self.kind {
            Kind::Unix(listener) => listener.socket().set_nonblocking(true),
            Kind::Tcp(listener) => listener.set_nonblocking(true),
        }
    }

    /// The descriptor that becomes readable when a connection arrives.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Unix(listener) => listener.as_fd(),
            Kind::Tcp(listener) => listener.as_fd(),
        }
    }

    /// The next connection that is there, in non-blocking mode; `None` if none is.
    pub(crate) fn accept_now(&self) -> io::Result<Option<(Link, String)>> {
        let accepted = match &self.kind {
            Kind::Unix(listener) => listener.socket().accept().and_then(|(socket, _)| {
                socket.set_nonblocking(true)?;
                Ok((Link::Unix(socket), "a local process".to_owned()))
            }),
            Kind::Tcp(listener) => listener.accept().and_then(|(socket, peer)| {
                socket.set_nonblocking(true)?;
                prepare(&socket)?;
                let link = match &self.tls {
                    Some(config) => {
                        let state = ServerConnection::new(Arc::clone(config))
                            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                        Link::Tls(Box::new(TlsLink::new(socket, state.into())))
                    }
                    None => Link::Tcp(socket),
                };
                Ok((link, peer.to_string()))
            }),
        };
        match accepted {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error) if is_later(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for the next connection.
    pub fn accept(&self) -> io::Result<Stream> {
        match &self.kind {
            Kind::Unix(listener) => Ok(Stream::Unix(listener.socket().accept()?.0)),
            Kind::Tcp(listener) => {
                let stream = listener.accept()?.0;
                prepare(&stream)?;
                match &self.tls {
                    Some(config) => {
                        let stream = TlsStream::server(stream, Arc::clone(config))?;
                        Ok(Stream::Tls(stream))
                    }
                    None => Ok(Stream::Tcp(stream)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::{socket_keepalive, tcp_keepidle};

    use super::*;

    #[test]
    fn the_system_probes_silent_peers_on_every_connection_of_tcp() {
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let wait = Duration::from_secs(5);
        let client = Stream::connect(listener.address(), wait).unwrap();
        let served = listener.accept().unwrap();
        let _polling = Stream::connect(listener.address(), wait).unwrap();
        listener.set_nonblocking().unwrap();
        let (polled, _) = listener.accept_now().unwrap().expect("a connection");
        for socket in [
            client.descriptor(),
            served.descriptor(),
            polled.descriptor(),
        ] {
            assert!(socket_keepalive(socket).unwrap());
            assert_eq!(tcp_keepidle(socket).unwrap(), Duration::from_secs(60));
        }
    }
}
