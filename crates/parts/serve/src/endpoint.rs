//! Serves `/metrics` and `/healthz` on a thread of its own, with limits on the number of
//! connections and on their time.

use std::collections::VecDeque;
use std::fmt;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::error::ServeError;
use crate::guard::guard;
use crate::http::{self, Request, Status};
use crate::metrics::Registry;
use crate::stream::Timed;
use crate::token::Token;
use crate::wake::wake_accept;

/// The most connections at once: Prometheus, a probe and a browser, with some to spare. One more
/// takes the place of the oldest, because a scrape is answered within milliseconds, and clients
/// that send nothing must not keep it out.
const CONNECTIONS: usize = 16;
/// The default time limit of a whole connection, including its handshake.
const WITHIN: Duration = Duration::from_secs(5);
/// The pause after an accept that failed, for example because there are no more descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// "Exposition formats" of the Prometheus documentation, text format 0.0.4.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN_TYPE: &str = "text/plain; charset=utf-8";

/// Returns `Ok` if the program is well, or else what is wrong.
pub type Health = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The token, the encryption and the health check of an endpoint.
#[derive(Clone)]
pub struct Settings {
    /// The token that `/metrics` requires; an endpoint that listens beyond loopback must have one.
    /// `/healthz` needs none, but shows a reason only to clients that present it.
    pub token: Option<Token>,
    /// TLS settings (see [`crate::tls::server`]); `None` for plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
    /// The health check; without one the program counts as well as long as it answers.
    pub health: Option<Health>,
    /// The time limit of a whole connection, including its handshake.
    pub within: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token: None,
            tls: None,
            health: None,
            within: WITHIN,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("token", &self.token)
            .field("tls", &self.tls.is_some())
            .field("health", &self.health.is_some())
            .field("within", &self.within)
            .finish()
    }
}

/// A running endpoint; dropping it stops it.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// [`ServeError::Unguarded`], [`ServeError::Listen`], [`ServeError::Thread`].
    pub fn start(
        address: SocketAddr,
        registry: Registry,
        settings: Settings,
    ) -> Result<Self, ServeError> {
        guard(address, settings.token.as_ref())?;
        let listening = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let server = Arc::new(Server { registry, settings });
        let stop = stopping.clone();
        let thread = thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || accept(&listener, &server, &stop))
            .map_err(|source| ServeError::Thread { address, source })?;
        Ok(Self {
            address,
            stopping,
            thread: Some(thread),
        })
    }

    /// The address that it listens on, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if wake_accept(self.address, WITHIN)
            && let Some(thread) = self.thread.take()
        {
            // An error means that the thread has panicked, which was printed then.
            let _ = thread.join();
        }
    }
}

struct Server {
    registry: Registry,
    settings: Settings,
}

/// The connections that are open, the oldest first.
#[derive(Default)]
struct ConnectionSlots {
    open: Mutex<VecDeque<(u64, TcpStream)>>,
}

/// A place among the connections, free again when it is dropped.
struct ConnectionSlot {
    number: u64,
    slots: Arc<ConnectionSlots>,
}

impl ConnectionSlots {
    /// Takes a place for the connection of this number, at the cost of the oldest when all are
    /// taken.
    fn acquire(
        self: &Arc<Self>,
        number: u64,
        socket: &TcpStream,
    ) -> std::io::Result<ConnectionSlot> {
        let socket = socket.try_clone()?;
        let mut open = self.lock();
        if open.len() >= CONNECTIONS
            && let Some((_, oldest)) = open.pop_front()
        {
            // An error means that the connection has ended by itself.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        open.push_back((number, socket));
        Ok(ConnectionSlot {
            number,
            slots: Arc::clone(self),
        })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.open.lock()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots
            .lock()
            .retain(|(number, _)| *number != self.number);
    }
}

fn accept(listener: &TcpListener, server: &Arc<Server>, stopping: &AtomicBool) {
    let slots = Arc::new(ConnectionSlots::default());
    for number in 0.. {
        let accepted = listener.accept();
        // The connection that wakes this thread is made after the flag was set, so the flag is read
        // after `accept`.
        if stopping.load(Ordering::Acquire) {
            return;
        }
        let taken = accepted.and_then(|(socket, _)| Ok((slots.acquire(number, &socket)?, socket)));
        let Ok((slot, socket)) = taken else {
            // Without a pause, a lack of descriptors would make this loop use a whole processor.
            thread::sleep(PAUSE);
            continue;
        };
        let server = server.clone();
        let work = move || {
            // The place is free again when this closure ends, also by a panic.
            let _slot = slot;
            server.serve(socket);
        };
        // A thread that cannot start drops the connection, which tells the client enough.
        let _ = thread::Builder::new()
            .name("metrics-one".to_owned())
            .spawn(work);
    }
}

impl Server {
    /// Serves one connection. I/O errors close it and are not reported: the client sees the close.
    fn serve(&self, socket: TcpStream) {
        let mut stream = Timed::new(socket, self.settings.within);
        let _ = match &self.settings.tls {
            None => self.converse(&mut stream),
            Some(config) => match ServerConnection::new(config.clone()) {
                Ok(session) => {
                    let mut stream = StreamOwned::new(session, stream);
                    let answered = self.converse(&mut stream);
                    stream.conn.send_close_notify();
                    answered.and_then(|()| stream.flush())
                }
                Err(error) => Err(std::io::Error::other(error)),
            },
        };
    }

    fn converse(&self, stream: &mut (impl Read + Write)) -> std::io::Result<()> {
        let mut bytes = [0; http::HEAD_BYTES];
        let mut length = 0;
        let head = loop {
            if let Some(end) = http::head_length(&bytes[..length]) {
                break Ok(end);
            }
            if length == bytes.len() {
                break Err(http::LONG);
            }
            match stream.read(&mut bytes[length..]) {
                Ok(0) => return Ok(()),
                Ok(read) => length += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        let answer = match head.and_then(|end| http::parse(&bytes[..end])) {
            Ok(request) => self.answer(&request),
            Err(status) => refusal(status, false),
        };
        stream.write_all(&answer)?;
        stream.flush()
    }

    fn answer(&self, request: &Request<'_>) -> Vec<u8> {
        let known = match (&self.settings.token, request.bearer) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(token), Some(offered)) => token.is(offered),
        };
        match request.path {
            "/metrics" if known => {
                let text = self.registry.text();
                http::answer(http::OK, METRICS_TYPE, &text, request.head_only)
            }
            "/metrics" => refusal(http::DENIED, request.head_only),
            // A probe has no token, so it learns whether the program is well, but not the reason.
            "/healthz" => {
                let health = self.settings.health.as_ref().map_or(Ok(()), |ask| ask());
                let (status, body) = match health {
                    Ok(()) => (http::OK, "ok\n".to_owned()),
                    Err(reason) if known => (http::BUSY, format!("{reason}\n")),
                    Err(_) => (http::BUSY, "not well\n".to_owned()),
                };
                http::answer(status, PLAIN_TYPE, &body, request.head_only)
            }
            _ => refusal(http::MISSING, request.head_only),
        }
    }
}

fn refusal(status: Status, head_only: bool) -> Vec<u8> {
    http::answer(status, PLAIN_TYPE, &format!("{}\n", status.1), head_only)
}
