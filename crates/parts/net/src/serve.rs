//! The server's end: connections of many clients. A client that has not said who it is has one
//! thread and little time and room; one that was admitted has a thread that reads and one that
//! writes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::accept::{Accepting, StopSignal};
use crate::connections::Connections;
use crate::ring::RingError;
use crate::share::{Charge, Share};
use crate::{Address, Frame, FrameError, Listener, NetError, Outbox};

/// What answers.
pub trait Service: Send + Sync + 'static {
    /// What it remembers of one connection.
    type Session: Send;

    /// A connection has come. Answers go into its outbox, now or later, from any thread.
    fn open(&self, connection: &Connection) -> Self::Session;

    /// A request has come. While this call waits nothing more is read from that connection, which
    /// is how back-pressure reaches the client. False ends the connection, once what waits in its
    /// outbox is written. `charge` stands for the frame's memory in [`ServeOptions::frames`]: a
    /// service that keeps the body keeps the charge with it. A frame that came in one read has
    /// none.
    fn request(&self, session: &mut Self::Session, frame: Frame, charge: Option<Charge>) -> bool;

    /// Whether the client has shown that it may be here. Asked after each request until it is true;
    /// until then the connection stands under the bounds for clients that are not admitted, and
    /// answers are written only after a call of [`Service::request`]. Without an answer of its own
    /// a service admits each client whose first frame has come whole.
    fn is_admitted(&self, _session: &Self::Session) -> bool {
        true
    }

    /// The connection has ended.
    fn close(&self, session: Self::Session, why: Closed);
}

/// Why a connection ended.
#[derive(Debug)]
pub enum Closed {
    /// The client hung up between two frames.
    Peer,
    /// The client sent what is not a frame.
    Frame(FrameError),
    /// Reading or writing failed.
    Io(io::Error),
    /// The service ended it.
    Service,
    /// The client did not read its answers for [`ServeOptions::write_wait`].
    Stuck,
    /// The client read its answers, or sent a frame that others waited for, more slowly than
    /// [`ServeOptions::least_rate`].
    Slow,
    /// The client was not admitted within [`ServeOptions::hello_wait`].
    Late,
    /// The client was not admitted yet, and its place was needed for a newer one; or it was
    /// admitted when all places were taken; or all connections held too much memory, and this one
    /// the most.
    Crowded,
    /// The ring to the client cannot be used: it was damaged, or the client lies.
    Ring(RingError),
}

/// One client's connection.
#[derive(Debug, Clone)]
pub struct Connection {
    /// A number of its own in this process.
    pub id: u64,
    /// The client, for messages.
    pub peer: String,
    /// Where its answers go.
    pub outbox: Arc<Outbox>,
}

/// The bounds of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Connections of admitted clients at once; one more is closed as soon as it comes.
    pub most_connections: usize,
    /// Connections of clients that are not admitted yet. One more takes the place of the oldest,
    /// because a client that means it is admitted within milliseconds, and one that does not waits
    /// in its place.
    pub most_unadmitted: usize,
    /// From the first byte of a connection, TLS included, until its client is admitted.
    pub hello_wait: Duration,
    /// The longest body that is taken from a client that is not admitted yet, if `most_body_bytes`
    /// is not less. A service that asks for a secret wants this small.
    pub most_hello_bytes: usize,
    /// The longest body that is taken; less, when `frames` is smaller.
    pub most_body_bytes: usize,
    /// The memory for frames that come in several reads. A frame is charged with its whole length
    /// before it is read, so that one that was begun can be finished; the memory itself is taken as
    /// it comes.
    pub frames: Arc<Share>,
    /// With this many bytes of answers unwritten no more requests are read.
    pub outbox_bytes: usize,
    /// How long a client may leave its answers unread before it is taken for dead.
    pub write_wait: Duration,
    /// Bytes a second, over [`ServeOptions::write_wait`], that a client must read while answers
    /// wait for it, and send while others wait for the memory of its frame.
    pub least_rate: u64,
    /// How long answers may still be written once nothing more is read.
    pub drain_wait: Duration,
    /// What is counted. Several servers may count together.
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

/// What a server counts.
#[derive(Debug, Default)]
pub struct ServeCounts {
    /// Connections of admitted clients now.
    pub open: AtomicU64,
    /// Connections of clients that are not admitted yet, now.
    pub unadmitted: AtomicU64,
    /// Connections that were closed because all places were taken.
    pub refused: AtomicU64,
    /// Connections that gave their place to a newer one before their client was admitted.
    pub displaced: AtomicU64,
    /// Connections whose client was not admitted in time.
    pub late: AtomicU64,
    /// Connections that ended because the client read or sent too slowly, or not at all.
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

/// A listener and its connections. Dropping it stops it.
pub struct Server {
    address: Address,
    stop: Arc<StopSignal>,
    connections: Arc<Connections>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to accept connections for `service`.
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

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connections now, of clients that are admitted and of those that are not.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Connections that were closed because there were too many.
    pub fn refused(&self) -> u64 {
        self.connections
            .options
            .counts
            .refused
            .load(Ordering::Relaxed)
    }

    /// Accepts nothing more, reads nothing more, writes the answers that are there (for at most
    /// [`ServeOptions::drain_wait`]), ends every connection and waits for their threads.
    pub fn stop(&mut self) {
        self.stop.call();
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        // A thread that panicked has said so on standard error; so below.
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
