//! TLS over a TCP connection that one thread reads while another writes.
//!
//! rustls keeps one state for both directions, guarded by a lock. No thread waits for the socket
//! while it holds that lock, so a peer that does not read cannot keep its own bytes from being
//! read.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

/// The most bytes that are read from the socket at once.
const READ_BYTES: usize = 32 << 10;

/// One end of a TLS connection; clones share it.
#[derive(Debug, Clone)]
pub struct TlsStream {
    socket: Arc<TcpStream>,
    state: Arc<Mutex<rustls::Connection>>,
    /// Bytes from the socket that are not decrypted yet. Locked by the thread that reads.
    arrived: Arc<Mutex<Arrived>>,
    /// Records that are about to be sent. The lock, held by the thread that writes, keeps them in
    /// the order in which they were made.
    order: Arc<Mutex<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct Arrived {
    bytes: Vec<u8>,
    from: usize,
    until: usize,
}

impl TlsStream {
    /// The connecting end. `host` is the name or number that the peer's certificate must have.
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

    /// The listening end. The handshake happens with the first read or write.
    pub fn server(socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<TlsStream> {
        let state = ServerConnection::new(config).map_err(broken)?;
        Ok(TlsStream::from_parts(socket, state.into()))
    }

    fn from_parts(socket: TcpStream, state: rustls::Connection) -> TlsStream {
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
        Ok(TlsStream::from_parts(socket, state))
    }

    /// The TCP socket below, for its options and its shutdown.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Sends the records that the state has ready.
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

    /// Decrypts some of what has arrived. Returns false if more has to come from the socket first.
    fn decrypt(&self, arrived: &mut Arrived) -> io::Result<bool> {
        if arrived.from == arrived.until {
            return Ok(false);
        }
        let answer = {
            let mut state = self.state.lock();
            // Records that are there already belong to a thread that writes and is between its two
            // steps. It sends them next. This thread must not do so: it would wait for a full
            // socket and read nothing meanwhile, and two peers that do so wait for each other.
            let others = state.wants_write();
            let mut bytes = &arrived.bytes[arrived.from..arrived.until];
            arrived.from += state.read_tls(&mut bytes)?;
            let processed = state.process_new_packets();
            if let Err(error) = processed {
                // The alert tells the peer why; if it cannot be sent, the connection ends all the
                // same.
                drop(state);
                self.flush_state().ok();
                return Err(broken(error));
            }
            !others && state.wants_write()
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
                // Frames say where they end, so a stream that was cut off without a TLS goodbye is
                // recognised by the torn frame at its end.
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use dyno_certificates::Certificates;

    use super::*;

    #[test]
    fn a_reader_does_not_wait_to_send_what_a_writer_has_made() {
        let folder = tempfile::tempdir().unwrap();
        let Some(made) = Certificates::make(folder.path(), "two threads of TLS") else {
            return;
        };
        let settings = dyno_serve::tls::server(&made.server(), &made.server_key()).unwrap();
        let trusting = dyno_serve::tls::client(&made.root()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let mut server = TlsStream::server(accepted, settings).unwrap();
        let shaking = thread::spawn(move || {
            server.read_exact(&mut [0]).unwrap();
            server
        });
        let mut client = TlsStream::client(socket, trusting, "localhost").unwrap();
        client.write_all(b"a").unwrap();
        let mut server = shaking.join().unwrap();

        // A writer that has made its record, and one that waits for a full socket.
        let made = client.state.lock().writer().write(b"x").unwrap();
        assert_eq!(made, 1);
        let order = Arc::clone(&client.order);
        let held = order.lock();
        server.write_all(b"hello").unwrap();
        let (answers, answered) = mpsc::channel();
        thread::spawn(move || {
            let mut into = [0; 8];
            let count = client.read(&mut into).unwrap();
            answers.send(into[..count].to_vec())
        });
        let read = answered.recv_timeout(Duration::from_secs(5));
        drop(held);
        assert_eq!(read.unwrap(), b"hello");
    }
}
