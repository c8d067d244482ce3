//! The server's end: connections of many clients. A client that has not said who it is has one
//! thread and little time and room; an admitted one has a thread that reads and one that writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::accept::{Accepting, StopSignal};
use super::connections::Connections;
use crate::share::{Charge, Share};
use crate::{Address, Closed, Frame, Listener, NetError, Outbox};

/// The code that answers the requests of a server's clients.
pub trait Service: Send + Sync + 'static {
    /// What it remembers of one connection.
    type Session: Send;

    /// A connection was accepted. Answers go into its outbox, now or later, from any thread.
    fn open(&self, connection: &Connection) -> Self::Session;

    /// A request has come. While this call waits, nothing more is read from that connection, which
    /// is how back-pressure reaches the client. Returning false ends the connection once what waits
    /// in its outbox is written. `charge` stands for the frame's memory in
    /// [`ServeOptions::frames`]: a service that keeps the body keeps the charge with it. A frame
    /// that came in one read has none.
    fn request(&self, session: &mut Self::Session, frame: Frame, charge: Option<Charge>) -> bool;

    /// Whether the client has shown that it may be here. Asked after each request until it is true;
    /// until then the connection is under the limits for clients that are not admitted, and answers
    /// are written only after a call of [`Service::request`]. By default a client is admitted with
    /// its first whole frame.
    fn is_admitted(&self, _session: &Self::Session) -> bool {
        true
    }

    /// The connection has ended; called exactly once.
    fn close(&self, session: Self::Session, why: Closed);
}

/// The connection of one client, as its service sees it.
#[derive(Debug, Clone)]
pub struct Connection {
    /// A number that no other connection of this process has.
    pub id: u64,
    /// The client's address, for messages.
    pub peer: String,
    /// Answers for the client go in here.
    pub outbox: Arc<Outbox>,
}

/// The limits of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Connections of admitted clients at once; a further one is closed as soon as it comes.
    pub most_connections: usize,
    /// Connections of clients that are not admitted yet. A further one takes the place of the
    /// oldest, because an honest client is admitted within milliseconds.
    pub most_unadmitted: usize,
    /// Time from the first byte of a connection, TLS included, until its client must be admitted.
    pub hello_wait: Duration,
    /// The longest body from a client that is not admitted yet, unless `most_body_bytes` is less. A
    /// service that asks for a secret wants this small.
    pub most_hello_bytes: usize,
    /// The longest body; less if `frames` is smaller.
    pub most_body_bytes: usize,
    /// The memory for frames that come in several reads. A frame is charged with its whole length
    /// before it is read, so that a frame that was begun can be finished; the memory itself is
    /// allocated as it comes.
    pub frames: Arc<Share>,
    /// No more requests are read while this many bytes of answers are unwritten.
    pub outbox_bytes: usize,
    /// How long a client may leave its answers unread before it counts as dead.
    pub write_wait: Duration,
    /// Bytes a second, over [`ServeOptions::write_wait`], that a client must read while answers
    /// wait for it, and send while others wait for the memory of its frame.
    pub least_rate: u64,
    /// How long answers may still be written once reading has ended.
    pub drain_wait: Duration,
    /// The counters; several servers may share them.
    pub counts: Arc<ServeCounts>,
}

impl Default for ServeOptions {
    fn default() -> ServeOptions {
        ServeOptions {
            most_connections: 1024,
            most_unadmitted: 64,
            hello_wait: Duration::from_secs(10),
            most_hello_bytes: 64 << 20,
            most_body_bytes: 64 << 20,
            frames: Share::new(256 << 20),
            outbox_bytes: 4 << 20,
            write_wait: Duration::from_secs(15),
            least_rate: 16 << 10,
            drain_wait: Duration::from_secs(2),
            counts: Arc::default(),
        }
    }
}

/// Counters of connections, as gauges and as totals.
#[derive(Debug, Default)]
pub struct ServeCounts {
    /// Connections of admitted clients now.
    pub open: AtomicU64,
    /// Connections of clients that are not admitted yet, now.
    pub unadmitted: AtomicU64,
    /// Connections closed because all places were taken.
    pub refused: AtomicU64,
    /// Connections whose place went to a newer one before their client was admitted.
    pub displaced: AtomicU64,
    /// Connections whose client was not admitted in time.
    pub late: AtomicU64,
    /// Connections ended because the client read or sent too slowly, or not at all.
    pub slow: AtomicU64,
}

impl ServeCounts {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn subtract(gauge: &AtomicU64) {
        gauge.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A listener and its connections. Dropping it stops the server.
pub struct Server {
    address: Address,
    stop: Arc<StopSignal>,
    connections: Arc<Connections>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to accept connections for `service`.
    pub fn start<S: Service>(
        listener: Listener,
        service: Arc<S>,
        mut options: ServeOptions,
    ) -> Result<Server, NetError> {
        let address = listener.address().clone();
        let failed = |error| NetError::io("listen at", &address, error);
        let most = options
            .frames
            .limit_bytes()
            .saturating_sub(crate::HEADER_BYTES);
        // A frame that is longer than the whole share could never be charged, and its connection
        // would wait for ever.
        options.most_body_bytes = options.most_body_bytes.min(most);
        options.most_hello_bytes = options.most_hello_bytes.min(options.most_body_bytes);
        let stop = Arc::new(StopSignal::new().map_err(failed)?);
        let connections = Arc::new(Connections::new(options));
        let accepting = Accepting {
            listener,
            service,
            stop: Arc::clone(&stop),
            connections: Arc::clone(&connections),
        };
        accepting.prepare().map_err(failed)?;
        let accepting = thread::Builder::new()
            .name("net-accept".to_owned())
            .spawn(move || accepting.run())
            .map_err(failed)?;
        Ok(Server {
            address,
            stop,
            connections,
            accepting: Some(accepting),
        })
    }

    /// The address, with the port that the system chose if it was 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connections now, of admitted clients and of others.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Connections closed because there were too many.
    pub fn refused(&self) -> u64 {
        self.connections
            .options
            .counts
            .refused
            .load(Ordering::Relaxed)
    }

    /// Stops accepting and reading, writes the answers that wait (for at most
    /// [`ServeOptions::drain_wait`]), ends every connection, and joins their threads.
    pub fn stop(&mut self) {
        self.stop.call();
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        // A thread that panicked has printed that itself; the same holds below.
        let _ = accepting.join();
        for thread in self.connections.end_all() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
