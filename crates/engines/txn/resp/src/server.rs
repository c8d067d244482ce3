//! Starts and stops the listener.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dyno_net::rustls::ServerConfig;
use dyno_serve::{Registry, ServeError, Token, guard};
use dyno_txn_api::limits::CALL_BYTES_MAX;
use dyno_txn_api::{Database, Error, TableDef};
use tracing::warn;

use crate::figures::Figures;
use crate::front::{Front, Setup};
use crate::local::Facts;
use crate::row::{HASH_BYTES, TABLE};
use crate::wire::COMMAND_BYTES_MAX;

/// How long the engine may take for a batch. It is long because `FLUSHALL` is a batch as well, and
/// removes all keys in one transaction.
const DEADLINE: Duration = Duration::from_secs(60);

/// How a server listens, and what it asks of its clients.
#[derive(Clone)]
pub struct Options {
    /// Where clients connect; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The secret that clients must show.
    pub token: Option<Token>,
    /// TLS; `None` for connections in the clear.
    pub tls: Option<Arc<ServerConfig>>,
    /// The most connections.
    pub most_connections: usize,
    /// Where what is counted is added to.
    pub registry: Registry,
}

impl Options {
    /// A server at `listen`: in the clear, for clients without a token, with room for ten thousand
    /// of them.
    pub fn new(listen: SocketAddr) -> Options {
        Options {
            listen,
            token: None,
            tls: None,
            most_connections: 10_000,
            registry: Registry::new(),
        }
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RespError {
    /// It would listen beyond this machine without a token, or cannot show what it counts.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The database has refused the table, or cannot be reached.
    #[error(transparent)]
    Database(#[from] Error),
    /// It cannot listen at the address.
    #[error("cannot listen at {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// Its thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// A running server. Dropping it stops it.
pub struct RespServer {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RespServer {
    /// Listens. The database must have been opened with
    /// [`register_procedures`](crate::register_procedures); its table is made if it is not there.
    ///
    /// # Errors
    /// [`RespError`].
    pub fn start(database: Box<dyn Database>, options: Options) -> Result<RespServer, RespError> {
        // The longest command and what is sent with it must fit into one call.
        const { assert!(COMMAND_BYTES_MAX + (512 << 10) < CALL_BYTES_MAX) };
        guard(options.listen, options.token.as_ref())?;
        let table = database.create_table(&TableDef::hash(TABLE, HASH_BYTES as u16))?;
        let description = database.describe()?;
        let failed_to_listen = |error| RespError::Listen(options.listen, error);
        let listener = TcpListener::bind(options.listen).map_err(failed_to_listen)?;
        listener.set_nonblocking(true).map_err(failed_to_listen)?;
        let address = listener.local_addr().map_err(failed_to_listen)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let setup = Setup {
            listener,
            tls: options.tls,
            facts: Arc::new(Facts {
                token: options.token,
                durability: description.durability,
                partitions: description.partitions,
                port: address.port(),
                most_connections: options.most_connections,
                started: Instant::now(),
                figures: Figures::new(&options.registry)?,
            }),
            table,
            stopping: Arc::clone(&stopping),
        };
        let failed = Arc::new(AtomicBool::new(false));
        let mut server = RespServer {
            address,
            stopping,
            failed: Arc::clone(&failed),
            thread: None,
        };
        let (started, start) = mpsc::sync_channel(1);
        let run = move || {
            // Set unless the thread ends as it should, also if it panics.
            let failure = Failure(failed);
            match serve(&*database, setup, &started) {
                Ok(()) => std::mem::forget(failure),
                Err(error) => warn!("the listener of Redis' protocol has failed: {error}"),
            }
        };
        let thread = thread::Builder::new().name("resp".to_owned()).spawn(run);
        server.thread = Some(thread.map_err(RespError::Thread)?);
        match start.recv() {
            Ok(started) => started.map(|()| server),
            // The thread has panicked, and has said so on standard error.
            Err(_) => Err(RespError::Thread(std::io::ErrorKind::Other.into())),
        }
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it has stopped by itself. Clients cannot connect any more then.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Answers what was sent, for a moment, and closes every connection.
    pub fn stop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

impl Drop for RespServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Says that the thread has failed, unless it is forgotten.
struct Failure(Arc<AtomicBool>);

impl Drop for Failure {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn serve(
    database: &dyn Database,
    setup: Setup,
    started: &mpsc::SyncSender<Result<(), RespError>>,
) -> std::io::Result<()> {
    let options = dyno_txn_api::Options {
        deadline: DEADLINE,
        ..Default::default()
    };
    // Each connection has at most one batch under way, and the sweep one step.
    let pipeline = database.pipeline(setup.facts.most_connections + 1, &options);
    let front = match pipeline {
        Ok(pipeline) => Front::new(setup, pipeline).map_err(RespError::Thread),
        Err(error) => Err(error.into()),
    };
    // The receiver waits until this is sent, so sending cannot fail.
    match front {
        Ok(front) => {
            let _ = started.send(Ok(()));
            front.run()
        }
        Err(error) => {
            let _ = started.send(Err(error));
            Ok(())
        }
    }
}
