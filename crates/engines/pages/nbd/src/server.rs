//! The listener, and a thread for each connection.

use std::collections::HashMap;
use std::io::{self, IoSlice, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dyno_net::rustls::ServerConfig;
use dyno_net::{Address, Listener, Stream};

use crate::export::Exports;
use crate::keepalive::keep_alive;
use crate::session::{Figures, Link, serve};
use crate::{Ended, NbdError};

/// TLS, which clients then must begin before anything else.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate and what is asked of clients.
    pub config: Arc<ServerConfig>,
    /// Whether `config` asks clients for certificates.
    pub clients: Clients,
}

/// Who may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// Whoever reaches the address.
    Anybody,
    /// Those with a certificate that the settings of TLS trust.
    Certified,
}

/// The bounds of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections at once; one more is closed as soon as it comes. Each takes up to 1 MiB.
    pub most_connections: usize,
    /// How long a handshake may take.
    pub handshake_wait: Duration,
    /// How long a client may leave its replies unread before it is taken for dead.
    pub write_wait: Duration,
    /// TLS; on TCP alone.
    pub tls: Option<Tls>,
    /// Whether an address that other machines reach is listened at though nothing asks who comes.
    pub open_to_all: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            most_connections: 64,
            handshake_wait: Duration::from_secs(20),
            write_wait: Duration::from_secs(120),
            tls: None,
            open_to_all: false,
        }
    }
}

/// A server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    address: Address,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    exports: Exports,
    options: Options,
    figures: Figures,
    stop: AtomicBool,
    connections: Mutex<Connections>,
    refused: AtomicU64,
    broken: AtomicU64,
}

#[derive(Debug, Default)]
struct Connections {
    next: u64,
    open: HashMap<u64, Stream>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Begins to offer `exports` at `address`.
    ///
    /// # Errors
    /// [`NbdError::Unguarded`], or when the address cannot be listened at.
    pub fn start(address: &Address, exports: Exports, options: Options) -> Result<Self, NbdError> {
        let tls = options.tls.as_ref();
        let address_text = || address.to_string();
        if matches!(address, Address::Unix(_)) && tls.is_some() {
            let address = address_text();
            return Err(NbdError::TlsOnUnix { address });
        }
        let asks = tls.is_some_and(|tls| tls.clients == Clients::Certified);
        if !address.is_local() && !asks && !options.open_to_all {
            let address = address_text();
            return Err(NbdError::Unguarded { address });
        }
        let listener = Listener::bind(address)?;
        let address = listener.address().clone();
        let shared = Arc::new(Shared {
            exports,
            options,
            figures: Figures::default(),
            stop: AtomicBool::new(false),
            connections: Mutex::default(),
            refused: AtomicU64::new(0),
            broken: AtomicU64::new(0),
        });
        let door = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("nbd-accept".to_owned())
            .spawn(move || door.accept_all(&listener))
            .map_err(NbdError::Thread)?;
        Ok(Self {
            address,
            shared,
            accepting: Some(accepting),
        })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Counters since the start.
    pub fn figures(&self) -> &Figures {
        &self.shared.figures
    }

    /// Connections now.
    pub fn connections(&self) -> usize {
        lock(&self.shared.connections).open.len()
    }

    /// Connections that were closed at once because there were too many.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Connections that failed, were reset by the client, or whose client did not speak the protocol.
    pub fn broken(&self) -> u64 {
        self.shared.broken.load(Ordering::Relaxed)
    }

    /// Accepts nothing more, ends every connection behind the request that it is at, and waits for
    /// their threads. What was replied to is stored; clients see the connection end.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        // The thread waits in accept; a connection of our own wakes it. If somebody has removed the
        // socket's file it cannot be woken, and ends with the process.
        if Stream::connect(&self.address, Duration::from_secs(1)).is_ok() {
            let _ = accepting.join();
        }
        let threads = {
            let mut connections = lock(&self.shared.connections);
            connections.open.values().for_each(Stream::shutdown);
            std::mem::take(&mut connections.threads)
        };
        for thread in threads {
            // A thread that panicked has said so on standard error; its connection has ended.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn accept_all(self: &Arc<Self>, listener: &Listener) {
        while !self.stop.load(Ordering::SeqCst) {
            match listener.accept() {
                Ok(stream) if !self.stop.load(Ordering::SeqCst) => self.admit(stream),
                Ok(_) => {}
                // Out of descriptors, mostly: there will be some again when a connection ends.
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Starts the thread of a connection. One that cannot be served is closed, which its client sees.
    fn admit(self: &Arc<Self>, stream: Stream) {
        let mut connections = lock(&self.connections);
        connections.threads.retain(|thread| !thread.is_finished());
        let full = connections.open.len() >= self.options.most_connections;
        let number = connections.next;
        let started = match stream.try_clone() {
            Ok(own) if !full => {
                let shared = Arc::clone(self);
                thread::Builder::new()
                    .name("nbd".to_owned())
                    .spawn(move || shared.connection(own, number))
            }
            _ => Err(io::ErrorKind::QuotaExceeded.into()),
        };
        match started {
            Ok(thread) => {
                connections.next += 1;
                connections.threads.push(thread);
                connections.open.insert(number, stream);
            }
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                stream.shutdown();
            }
        }
    }

    fn connection(&self, stream: Stream, number: u64) {
        let served = Socket::new(stream, &self.options)
            .and_then(|socket| serve(socket, &self.exports, &self.figures));
        if !matches!(served, Ok(Ended::Left | Ended::HungUp)) {
            self.broken.fetch_add(1, Ordering::Relaxed);
        }
        // `admit` holds the lock until the connection is in the list.
        if let Some(stream) = lock(&self.connections).open.remove(&number) {
            stream.shutdown();
        }
    }
}

fn lock(connections: &Mutex<Connections>) -> MutexGuard<'_, Connections> {
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection with its time limits.
struct Socket {
    stream: Stream,
    tls: Option<Arc<ServerConfig>>,
    /// When the handshake must be done.
    until: Option<Instant>,
}

impl Socket {
    fn new(stream: Stream, options: &Options) -> io::Result<Self> {
        if let Stream::Tcp(socket) = &stream {
            keep_alive(socket)?;
        }
        stream.set_write_timeout(Some(options.write_wait))?;
        Ok(Self {
            stream,
            tls: options.tls.as_ref().map(|tls| Arc::clone(&tls.config)),
            until: Some(Instant::now() + options.handshake_wait),
        })
    }
}

impl Link for Socket {
    fn wants_tls(&self) -> bool {
        self.tls.is_some()
    }

    fn start_tls(self) -> io::Result<Self> {
        let config = self.tls.ok_or(io::ErrorKind::Unsupported)?;
        Ok(Self {
            stream: self.stream.accept_tls(config)?,
            tls: None,
            until: self.until,
        })
    }

    fn settle(&mut self) -> io::Result<()> {
        self.until = None;
        self.stream.set_read_timeout(None)
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
        }
        self.stream.read(into)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.stream.write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
