//! A socket whose calls return at once, in the clear or in TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use dyno_net::rustls::{ServerConfig, ServerConnection};
use rustix::net::sockopt;

/// How long a client may be silent before the system asks whether it is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// The end of a connection that is ours.
pub enum Socket {
    /// A connection in the clear.
    Plain(TcpStream),
    /// In TLS. The handshake happens with the first reads.
    Tls(Box<TlsSocket>),
}

/// A socket with the state of its TLS.
pub struct TlsSocket {
    socket: TcpStream,
    state: ServerConnection,
}

impl Socket {
    /// The socket of an accepted connection.
    pub fn new(socket: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Replies are written whole, so that nothing is gained by holding a part of one back.
        socket.set_nodelay(true)?;
        // A client whose machine has gone says nothing, as one that has nothing to say. The system
        // asks it from time to time, so that it does not keep its place for ever.
        sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
        sockopt::set_socket_keepalive(&socket, true)?;
        let Some(config) = tls else {
            return Ok(Socket::Plain(socket));
        };
        let state = ServerConnection::new(Arc::clone(config)).map_err(broken)?;
        Ok(Socket::Tls(Box::new(TlsSocket { socket, state })))
    }

    /// The descriptor to watch for events.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Plain(socket) => socket.as_fd(),
            Socket::Tls(tls) => tls.socket.as_fd(),
        }
    }

    /// Reads what has arrived; 0 at the end. `WouldBlock` if nothing has.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(socket) => socket.read(into),
            Socket::Tls(tls) => tls.read(into),
        }
    }

    /// Writes as much as there is room for. `WouldBlock` if the system takes nothing now.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(socket) => socket.write(bytes),
            Socket::Tls(tls) => tls.write(bytes),
        }
    }

    /// Sends what TLS has encrypted or has to say itself. Returns whether some of it is left.
    pub fn flush(&mut self) -> io::Result<bool> {
        match self {
            Socket::Plain(_) => Ok(false),
            Socket::Tls(tls) => tls.flush(),
        }
    }
}

impl TlsSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.state.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A client that ends without saying so in TLS has ended all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if self.state.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            let processed = self.state.process_new_packets().map_err(broken);
            // Also after an error, because an alert says why to the client.
            let flushed = self.flush();
            processed?;
            flushed?;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The state buffers a bounded amount, so records go out before more is encrypted.
        if self.flush()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let written = self.state.writer().write(bytes)?;
        self.flush()?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<bool> {
        while self.state.wants_write() {
            match self.state.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
