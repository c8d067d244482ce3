//! TLS over a TCP connection that one thread reads while another writes.
//!
//! rustls keeps one state for both directions, which a lock guards; nothing waits for the socket
//! while it holds that lock, so a peer that does not read cannot keep its own bytes from being
//! read.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

/// Bytes that are read from the socket at once.
const READ_BYTES: usize = 32 << 10;

/// One end of a TLS connection; clones share it.
#[derive(Debug, Clone)]
pub struct TlsStream {
    socket: Arc<TcpStream>,
    state: Arc<Mutex<rustls::Connection>>,
    /// What came from the socket and is not decrypted yet. Held by the one who reads.
    arrived: Arc<Mutex<Arrived>>,
    /// Records go out in the order in which they were made. Held by the one who writes.
    order: Arc<Mutex<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct Arrived {
    bytes: Vec<u8>,
    from: usize,
    until: usize,
}

impl TlsStream {
    /// The end of who connects. `host` is the name or number that the peer's certificate must have.
    pub fn client(
        socket: TcpStream,
        config: Arc<ClientConfig>,
        host: &str,
    ) -> io::Result<TlsStream> {
        let name = rustls::pki_types::ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let state = ClientConnection::new(config, name).map_err(broken)?;
        TlsStream::shake_hands(socket, state.into())
    }

    /// The end of who listens. Hands are shaken with the first read or write.
    pub fn server(socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<TlsStream> {
        let state = ServerConnection::new(config).map_err(broken)?;
        Ok(TlsStream::of(socket, state.into()))
    }

    fn of(socket: TcpStream, state: rustls::Connection) -> TlsStream {
        TlsStream {
            socket: Arc::new(socket),
            state: Arc::new(Mutex::new(state)),
            arrived: Arc::default(),
            order: Arc::default(),
        }
    }

    fn shake_hands(socket: TcpStream, mut state: rustls::Connection) -> io::Result<TlsStream> {
        while state.is_handshaking() {
            state.complete_io(&mut &socket)?;
        }
        Ok(TlsStream::of(socket, state))
    }

    /// The socket below.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Sends what the state has to send.
    fn flush_state(&self) -> io::Result<()> {
        let mut out = self.order.lock();
        {
            let mut state = self.state.lock();
            while state.wants_write() {
                state.write_tls(&mut *out)?;
            }
        }
        let sent = (&*self.socket).write_all(&out);
        out.clear();
        sent
    }

    /// Decrypts some of what has arrived. False: more has to come from the socket first.
    fn decrypt(&self, arrived: &mut Arrived) -> io::Result<bool> {
        if arrived.from == arrived.until {
            return Ok(false);
        }
        let answer = {
            let mut state = self.state.lock();
            let mut bytes = &arrived.bytes[arrived.from..arrived.until];
            arrived.from += state.read_tls(&mut bytes)?;
            let processed = state.process_new_packets();
            if let Err(error) = processed {
                // The peer is told why, if it can be.
                drop(state);
                self.flush_state().ok();
                return Err(broken(error));
            }
            state.wants_write()
        };
        if answer {
            self.flush_state()?;
        }
        Ok(true)
    }
}

impl Read for TlsStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut arrived = self.arrived.lock();
        loop {
            let plain = self.state.lock().reader().read(into);
            match plain {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.decrypt(&mut arrived)? {
                continue;
            }
            arrived.bytes.resize(READ_BYTES, 0);
            let count = (&*self.socket).read(&mut arrived.bytes)?;
            (arrived.from, arrived.until) = (0, count);
            if count == 0 {
                // Frames say where they end, so a stream that was cut without a goodbye is told
                // from one that ended by the frame that is torn.
                return Ok(0);
            }
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = {
            let mut state = self.state.lock();
            state.writer().write_vectored(parts)?
        };
        self.flush_state()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_state()
    }
}

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
