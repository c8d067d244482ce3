//! The connection to a broker, plain or encrypted.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use dyno_serve::rustls::pki_types::ServerName;
use dyno_serve::rustls::{ClientConfig, ClientConnection, Error, StreamOwned};

/// A connection; reads end after the socket's own time limit with [`io::ErrorKind::WouldBlock`].
pub(crate) enum Link {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Link {
    /// Makes the TLS handshake on `socket` with the broker called `host`, which may take `within`
    /// for each of its answers.
    pub(crate) fn tls(
        mut socket: TcpStream,
        config: Arc<ClientConfig>,
        host: &str,
        within: Duration,
    ) -> io::Result<Link> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut state = ClientConnection::new(config, name).map_err(io::Error::other)?;
        socket.set_read_timeout(Some(within))?;
        while state.is_handshaking() {
            state.complete_io(&mut socket)?;
        }
        Ok(Link::Tls(Box::new(StreamOwned::new(state, socket))))
    }

    /// The socket that carries the bytes, for its time limits.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Link::Plain(socket) => socket,
            Link::Tls(stream) => &stream.sock,
        }
    }
}

/// The reason, if the handshake failed because the certificate of the other side is not trusted.
pub(crate) fn distrust(error: &io::Error) -> Option<String> {
    let tls = error.get_ref()?.downcast_ref::<Error>()?;
    matches!(tls, Error::InvalidCertificate(_)).then(|| format!("TLS: {tls}"))
}

impl Read for Link {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Link::Plain(socket) => socket.read(bytes),
            Link::Tls(stream) => stream.read(bytes),
        }
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Link::Plain(socket) => socket.write(bytes),
            Link::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Link::Plain(socket) => socket.flush(),
            Link::Tls(stream) => stream.flush(),
        }
    }
}
