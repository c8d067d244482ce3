//! The listener: accepts connections, renews the server's lease, and does what is due in groups.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyno_net::rustls::ServerConfig;
use dyno_net::{Address, Listener, NetError, Share, Stream};
use dyno_pubsub::{Dsn, Error};
use dyno_serve::{Registry, ServeError, Token, guard, wake_accept};
use parking_lot::Mutex;
use tracing::warn;

use crate::connection::{self, DRAIN};
use crate::coordinator::Coordinator;
use crate::shared::{Counts, Shared};
use crate::store::Store;

/// How often groups are looked at, which bounds how late a rebalance begins.
const TICK: Duration = Duration::from_millis(50);
/// The pause after an accept that failed, for example because there are no more descriptors.
const PAUSE: Duration = Duration::from_millis(20);
const CONNECT_WAIT: Duration = Duration::from_secs(1);

/// How a server listens, and what is behind it.
#[derive(Clone)]
pub struct Options {
    /// The database with the log.
    pub dsn: Dsn,
    /// Where this process's own broker listens.
    pub broker: Address,
    /// The address of that broker in the database, by which partitions name it.
    pub broker_address: String,
    /// Where clients connect; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The host and port that clients are told, if they are not those of `listen`. Needed when that
    /// stands for all addresses of this machine.
    pub advertise: Option<(String, u16)>,
    /// The secret that clients must show, which also admits this server at the broker.
    pub token: Option<Token>,
    /// TLS; `None` for connections in the clear.
    pub tls: Option<Arc<ServerConfig>>,
    /// How long this server coordinates groups without renewing its lease.
    pub lease: Duration,
    /// The memory for requests, in bytes.
    pub memory_bytes: usize,
    /// The most connections.
    pub most_connections: usize,
    /// The partitions of topics that are created because a client asks for them; `None` if such
    /// topics are refused.
    pub create_partitions: Option<u32>,
    /// Where what is counted is shown.
    pub registry: Registry,
}

impl Options {
    /// A server at `listen` behind which is the broker of this process: in the clear, for clients
    /// without a token, with room for a hundred of them.
    pub fn new(dsn: Dsn, broker: Address, listen: SocketAddr) -> Options {
        Options {
            dsn,
            broker_address: broker.to_string(),
            broker,
            listen,
            advertise: None,
            token: None,
            tls: None,
            lease: Duration::from_secs(10),
            memory_bytes: 64 << 20,
            most_connections: 100,
            create_partitions: None,
            registry: Registry::new(),
        }
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum KafkaError {
    /// It would listen beyond this machine without a token, or cannot show its metrics.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// It cannot listen.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The database cannot be reached, or has no log in it.
    #[error(transparent)]
    Log(#[from] Error),
    /// Clients would not know where to connect.
    #[error(
        "{0} stands for all addresses of this machine: say which host and port clients are told"
    )]
    Nameless(SocketAddr),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A running server. Dropping it stops it.
pub struct KafkaServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    open: Arc<Open>,
    threads: Vec<JoinHandle<()>>,
}

/// The connections that are open, to end them at the stop.
#[derive(Default)]
struct Open(Mutex<HashMap<u64, Stream>>);

impl KafkaServer {
    /// Listens, and enters the servers of Kafka's clients.
    ///
    /// # Errors
    /// [`KafkaError`].
    pub fn start(options: Options) -> Result<KafkaServer, KafkaError> {
        guard(options.listen, options.token.as_ref())?;
        if options.listen.ip().is_unspecified() && options.advertise.is_none() {
            return Err(KafkaError::Nameless(options.listen));
        }
        let listener = Listener::bind(&options.listen.to_string().parse()?)?;
        let mut address = options.listen;
        if let Address::Tcp { port, .. } = listener.address() {
            address.set_port(*port);
        }
        let listener = match &options.tls {
            Some(config) => listener.with_tls(Arc::clone(config)),
            None => listener,
        };
        let counts = Counts::new(&options.registry)?;
        let store = Store::new(&options.dsn);
        let advertised = options.advertise.clone();
        let (host, port) = advertised.unwrap_or_else(|| (address.ip().to_string(), address.port()));
        // From before the request on, so that the lease ends here before it ends for others.
        let leased_until = Instant::now() + options.lease;
        // Clients are told of this server as soon as it is entered, which is before it accepts. It
        // listens already, so the system keeps those that come meanwhile.
        let node = store.enter((&host, port), &options.broker_address, options.lease)?;
        // So that the database may be away from here on without clients losing this server.
        store.nodes(node)?;
        let coordinator = Coordinator::new(seed(node));
        coordinator.lease_until(leased_until);
        let shared = Arc::new(Shared {
            store,
            coordinator,
            sequences: Default::default(),
            node,
            broker: options.broker.to_string(),
            token: options.token.clone(),
            frames: Share::new(options.memory_bytes),
            stopping: AtomicBool::new(false),
            counts,
            create_partitions: options.create_partitions,
            topics: Mutex::default(),
        });
        // A thread that cannot be started fails the start. The value is dropped then, which stops
        // the threads before it and gives the lease back.
        let mut server = KafkaServer {
            address,
            shared: Arc::clone(&shared),
            open: Arc::default(),
            threads: Vec::new(),
        };
        let accepting = (Arc::clone(&shared), Arc::clone(&server.open));
        let most = options.most_connections;
        server.spawn("kafka-accept", move || {
            accept(&listener, &accepting.0, &accepting.1, most);
        })?;
        let ticking = Arc::clone(&shared);
        server.spawn("kafka-tick", move || {
            while !ticking.is_stopping() {
                thread::sleep(TICK);
                ticking.coordinator.tick();
            }
        })?;
        // With sessions of its own: requests may take all of the others for longer than a lease.
        let leases = Store::new(&options.dsn);
        server.spawn("kafka-lease", move || {
            renew(&shared, &leases, options.lease)
        })?;
        Ok(server)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every connection and gives its groups to others.
    pub fn stop(&mut self) {
        if self.shared.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        // Members that wait for a rebalance are answered first: until then the writing threads of
        // their connections wait, and would use up the time for the others.
        self.shared.coordinator.forget_all();
        let woken = wake_accept(self.address, CONNECT_WAIT);
        for stream in self.open.0.lock().values() {
            // Reading ends here, and not the connection: requests that were read are carried out,
            // and answered if their answers come in time.
            stream.shutdown_read();
        }
        let until = Instant::now() + DRAIN;
        while !self.open.0.lock().is_empty() && Instant::now() < until {
            thread::sleep(PAUSE);
        }
        for stream in self.open.0.lock().values() {
            stream.shutdown();
        }
        // A thread that still waits for a connection never ends, so it is not joined. It holds the
        // port until the process ends.
        if woken {
            for thread in self.threads.drain(..) {
                // A thread that panicked has said so on standard error.
                let _ = thread.join();
            }
        }
        // A lease that cannot be ended ends by itself.
        let _ = self.shared.store.leave(self.shared.node);
    }
}

impl Drop for KafkaServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Names of members must not repeat those that an earlier server gave, whose members may come here.
fn seed(node: i32) -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    dyno_random::mix(since.as_nanos() as u64 ^ u64::from(node.unsigned_abs()) << 32)
}

/// Renews the lease until the stop. Groups are forgotten as soon as it has lapsed, because others
/// may coordinate them from then on; after that the server begins without any.
fn renew(shared: &Shared, leases: &Store, lease: Duration) {
    let mut next = Instant::now() + lease / 3;
    while !shared.is_stopping() {
        thread::sleep(TICK);
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + lease / 3;
        // From before the request on, as at the start: an answer that takes long must not prolong
        // what the database has counted from earlier.
        let until = Instant::now() + lease;
        match leases.renew(shared.node, lease) {
            Ok(was_held) => {
                if !was_held {
                    warn!(
                        "the lease on groups of Kafka's clients had lapsed; their members join again"
                    );
                    shared.coordinator.forget_all();
                }
                shared.coordinator.lease_until(until);
                expire_transactions(leases);
            }
            // Nothing has to be done about the groups: the coordinator looks at the clock itself,
            // and refuses to speak for them once the lease has lapsed.
            Err(error) => warn!("cannot renew the lease on groups of Kafka's clients: {error}"),
        }
    }
}

/// Ends transactions whose producers have gone. The next one of the same name would end them, too,
/// but it may never come, and what is kept aside takes room.
fn expire_transactions(store: &Store) {
    match store.expire_transactions() {
        Ok(0) => {}
        Ok(ended) => {
            warn!("{ended} transactions of Kafka's producers took too long and were aborted")
        }
        Err(error) => warn!("cannot end transactions that take too long: {error}"),
    }
}

fn accept(listener: &Listener, shared: &Arc<Shared>, open: &Arc<Open>, most: usize) {
    for number in 0.. {
        let accepted = listener.accept();
        if shared.is_stopping() {
            return;
        }
        let Ok(stream) = accepted else {
            thread::sleep(PAUSE);
            continue;
        };
        let Ok(other_end) = stream.try_clone() else {
            continue;
        };
        {
            let mut open = open.0.lock();
            // Looked at again under the lock, which a stop takes after it has said that it stops.
            // So a stop finds this connection and ends it, or the connection is not begun.
            if shared.is_stopping() {
                return;
            }
            if open.len() >= most {
                shared.counts.refused.add(1);
                continue;
            }
            open.insert(number, other_end);
        }
        shared.counts.connections.add(1);
        let (shared, open) = (Arc::clone(shared), Arc::clone(open));
        let place = Place {
            number,
            shared: Arc::clone(&shared),
            open,
        };
        // A thread that cannot start drops the place and the connection, which its client sees.
        let _ = thread::Builder::new()
            .name("kafka-read".to_owned())
            .spawn(move || {
                let _place = place;
                connection::serve(&shared, stream);
            });
    }
}

/// A place among the connections, free again when it is dropped, however its thread ends.
struct Place {
    number: u64,
    shared: Arc<Shared>,
    open: Arc<Open>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.0.lock().remove(&self.number);
        self.shared.counts.connections.add(-1);
    }
}
