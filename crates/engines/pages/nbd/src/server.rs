//! The listener, a thread for each connection, and one that closes connections which keep others
//! out.

use std::collections::HashMap;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dyno_net::rustls::ServerConfig;
use dyno_net::{Address, Listener, Stream};
use parking_lot::Mutex;

use crate::connection_state::ConnectionState;
use crate::export::Exports;
use crate::keepalive::keep_alive;
use crate::session::{Figures, Link, serve};
use crate::{Ended, NbdError};

/// The settings of TLS. Clients must begin TLS before anything else.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The server's certificate, and what is demanded of clients.
    pub config: Arc<ServerConfig>,
    /// Whether `config` asks clients for certificates; must agree with it.
    pub clients: Clients,
}

/// Which clients are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// Every client that reaches the address.
    Anybody,
    /// Clients with a certificate that the settings of TLS trust.
    Certified,
}

/// The limits of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections at once; each takes up to 1 MiB. If one more comes, the oldest of those that
    /// never sent a request is closed; if each has sent one, the new connection is closed.
    pub most_connections: usize,
    /// How long a handshake may take, that of TLS included, from the first byte to the last.
    pub handshake_wait: Duration,
    /// How long a client may be silent after the handshake; `None` sets no limit.
    pub client_idle: Option<Duration>,
    /// How long a client may leave its replies unread before it counts as dead.
    pub write_wait: Duration,
    /// TLS settings; `None` speaks none. Only for TCP.
    pub tls: Option<Tls>,
    /// Whether to listen at an address that other machines reach although clients are not checked.
    pub open_to_all: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            most_connections: 64,
            handshake_wait: Duration::from_secs(20),
            client_idle: None,
            write_wait: Duration::from_secs(120),
            tls: None,
            open_to_all: false,
        }
    }
}

/// A running server. Dropping it stops it and waits for its threads.
#[derive(Debug)]
pub struct Server {
    address: Address,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    watching: Option<JoinHandle<()>>,
    /// The watching thread ends when this is dropped.
    watch: Option<Sender<()>>,
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
    late: AtomicU64,
    displaced: AtomicU64,
}

#[derive(Debug, Default)]
struct Connections {
    next: u64,
    open: HashMap<u64, Open>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Open {
    stream: Stream,
    state: Arc<ConnectionState>,
}

/// The watching thread looks this often within the shortest limit, and at least once a second.
const LOOKS: u32 = 8;
const LONGEST_LOOK: Duration = Duration::from_secs(1);
const SHORTEST_LOOK: Duration = Duration::from_millis(5);

impl Server {
    /// Starts to offer `exports` at `address`.
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
            late: AtomicU64::new(0),
            displaced: AtomicU64::new(0),
        });
        let (watch, end) = channel();
        let watcher = Arc::clone(&shared);
        let watching = thread::Builder::new()
            .name("nbd-watch".to_owned())
            .spawn(move || watcher.watch(&end))
            .map_err(NbdError::Thread)?;
        let acceptor = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("nbd-accept".to_owned())
            .spawn(move || acceptor.accept_all(&listener))
            .map_err(NbdError::Thread)?;
        Ok(Self {
            address,
            shared,
            accepting: Some(accepting),
            watching: Some(watching),
            watch: Some(watch),
        })
    }

    /// The address, with the port that the system chose if it was 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The counters of requests and bytes since the start.
    pub fn figures(&self) -> &Figures {
        &self.shared.figures
    }

    /// Connections that are open now, in the handshake or after it.
    pub fn connections(&self) -> usize {
        self.shared.connections.lock().open.len()
    }

    /// Connections that were closed at once because there were too many.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Connections that failed, were reset by the client, or whose client did not speak the
    /// protocol.
    pub fn broken(&self) -> u64 {
        self.shared.broken.load(Ordering::Relaxed)
    }

    /// Connections that the server closed because the handshake took too long, or the client was
    /// idle for too long.
    pub fn late(&self) -> u64 {
        self.shared.late.load(Ordering::Relaxed)
    }

    /// Connections that never sent a request and were closed to make room for another.
    pub fn displaced(&self) -> u64 {
        self.shared.displaced.load(Ordering::Relaxed)
    }

    /// The limit of connections at once.
    pub fn most_connections(&self) -> usize {
        self.shared.options.most_connections
    }

    /// Stops accepting, ends every connection after the request that it is serving, and waits for
    /// their threads. What was replied to is stored; clients see the connection end.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        // The thread waits in accept, and a connection of our own wakes it. If another process has
        // removed the socket's file it cannot be woken, and ends with the process.
        if Stream::connect(&self.address, Duration::from_secs(1)).is_ok() {
            let _ = accepting.join();
        }
        drop(self.watch.take());
        if let Some(watching) = self.watching.take() {
            let _ = watching.join();
        }
        // Threads are joined without the lock, because each takes it once more to leave the list.
        let threads = {
            let mut connections = self.shared.connections.lock();
            for open in connections.open.values() {
                open.stream.shutdown();
            }
            std::mem::take(&mut connections.threads)
        };
        for thread in threads {
            // A panic was printed by the thread itself; its connection has ended.
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
                // Mostly the process is out of descriptors; a pause avoids a busy loop until a
                // connection ends.
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Closes connections whose time is over, until the other end of the channel is dropped. A
    /// connection's own thread cannot do this: within TLS a byte now and then begins its wait anew.
    fn watch(&self, end: &Receiver<()>) {
        let idle = self.options.client_idle;
        let shortest = idle.map_or(self.options.handshake_wait, |idle| {
            idle.min(self.options.handshake_wait)
        });
        let pause = (shortest / LOOKS).clamp(SHORTEST_LOOK, LONGEST_LOOK);
        while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let mut connections = self.connections.lock();
            let late = |_: &u64, open: &mut Open| {
                let late = open.state.is_late(self.options.handshake_wait, idle);
                if late {
                    // It is counted before the shutdown, because a client that sees its end may
                    // look at the count.
                    self.late.fetch_add(1, Ordering::Relaxed);
                    open.state.close();
                    open.stream.shutdown();
                }
                !late
            };
            connections.open.retain(late);
        }
    }

    /// Closes the oldest of the connections that never sent a request, so that idle ones cannot
    /// keep others out. A client that wants something sends its first request before so many others
    /// come that it is the oldest.
    fn displace(&self, connections: &mut Connections) -> bool {
        let silent = connections.open.iter();
        let silent =
            silent.filter_map(|(&number, open)| Some((open.state.silent_since()?, number)));
        let Some((_, number)) = silent.min() else {
            return false;
        };
        if let Some(open) = connections.open.remove(&number) {
            self.displaced.fetch_add(1, Ordering::Relaxed);
            open.state.close();
            open.stream.shutdown();
        }
        true
    }

    /// Starts the thread of a connection. A connection that cannot be served is closed, which its
    /// client sees.
    fn admit(self: &Arc<Self>, stream: Stream) {
        // The lock is held until the connection is listed, so that its thread cannot look for its
        // entry before that exists.
        let mut connections = self.connections.lock();
        connections.threads.retain(|thread| !thread.is_finished());
        let full = connections.open.len() >= self.options.most_connections
            && !self.displace(&mut connections);
        let number = connections.next;
        let state = Arc::new(ConnectionState::new());
        let started = match stream.try_clone() {
            Ok(own) if !full => {
                let (shared, state) = (Arc::clone(self), Arc::clone(&state));
                thread::Builder::new()
                    .name("nbd".to_owned())
                    .spawn(move || shared.connection(own, number, state))
            }
            _ => Err(io::ErrorKind::QuotaExceeded.into()),
        };
        match started {
            Ok(thread) => {
                connections.next += 1;
                connections.threads.push(thread);
                connections.open.insert(number, Open { stream, state });
            }
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                stream.shutdown();
            }
        }
    }

    fn connection(&self, stream: Stream, number: u64, state: Arc<ConnectionState>) {
        let served = Socket::new(stream, &self.options, Arc::clone(&state))
            .and_then(|socket| serve(socket, &self.exports, &self.figures));
        if !matches!(served, Ok(Ended::Left | Ended::HungUp)) && !state.is_closed() {
            self.broken.fetch_add(1, Ordering::Relaxed);
        }
        // The watching thread may have removed the entry and shut the stream down already.
        if let Some(open) = self.connections.lock().open.remove(&number) {
            open.stream.shutdown();
        }
    }
}

/// A connection with its time limits, in the clear or in TLS.
struct Socket {
    stream: Stream,
    tls: Option<Arc<ServerConfig>>,
    /// When the handshake must be done; `None` after it.
    until: Option<Instant>,
    state: Arc<ConnectionState>,
}

impl Socket {
    fn new(stream: Stream, options: &Options, state: Arc<ConnectionState>) -> io::Result<Self> {
        if let Stream::Tcp(socket) = &stream {
            keep_alive(socket, options.write_wait)?;
        }
        stream.set_write_timeout(Some(options.write_wait))?;
        Ok(Self {
            stream,
            tls: options.tls.as_ref().map(|tls| Arc::clone(&tls.config)),
            until: Some(Instant::now() + options.handshake_wait),
            state,
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
            state: self.state,
        })
    }

    fn settle(&mut self) -> io::Result<()> {
        self.until = None;
        self.state.settle();
        self.stream.set_read_timeout(None)
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until {
            // The limit of each read is what is left of the whole handshake, so a client that sends
            // a byte at a time does not extend it.
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
        }
        let count = self.stream.read(into)?;
        if count > 0 {
            self.state.note_bytes();
        }
        Ok(count)
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
