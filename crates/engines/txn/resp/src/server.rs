//! Starts and stops the listener.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dyno_net::rustls::ServerConfig;
use dyno_serve::{Registry, ServeError, Token, guard};
use dyno_txn_api::limits::CALL_BYTES_MAX;
use dyno_txn_api::{Database, Error, FrontEnd, Pipeline, Step, TableDef};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::figures::Figures;
use crate::front::{Front, Setup, TICK};
use crate::local::Facts;
use crate::row::{HASH_BYTES, TABLE};
use crate::wire::COMMAND_BYTES_MAX;

/// How long the engine may take for a batch. It is long because `FLUSHALL` is a batch as well, and
/// removes all keys in one transaction.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long a thread waits for an engine that cannot be waited for together with sockets.
const SHORT: Duration = Duration::from_millis(1);

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
    Listen(SocketAddr, io::Error),
    /// Its thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// A running server. Dropping it stops it.
pub struct RespServer {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    /// Its other end is dropped when the server has ended.
    end: Receiver<()>,
    /// The thread of the server, unless a thread of the engine runs it.
    thread: Option<JoinHandle<()>>,
    /// Kept until the server has ended, which uses it.
    database: Option<Arc<dyn Database>>,
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
        let (ended, end) = mpsc::channel();
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
            end: ended,
        };
        // Each connection has at most one batch under way, and the sweep one step.
        let window = options.most_connections + 1;
        let front = Front::new(setup).map_err(|error| RespError::Listen(address, error))?;
        let front = Box::new(front);
        let database: Arc<dyn Database> = Arc::from(database);
        let thread = match database.host(front, window, &engine_options())? {
            None => None,
            Some(front) => Some(run_in_thread(Arc::clone(&database), front, window)?),
        };
        Ok(RespServer {
            address,
            stopping,
            end,
            thread,
            database: Some(database),
        })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it has stopped by itself. Clients cannot connect any more then.
    pub fn has_failed(&self) -> bool {
        let is_over = matches!(self.end.try_recv(), Err(TryRecvError::Disconnected));
        is_over && !self.stopping.load(Ordering::Acquire)
    }

    /// Answers what was sent, for a moment, and closes every connection.
    pub fn stop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        // Nothing is ever sent: this waits until the other end is dropped.
        let _ = self.end.recv();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on standard error.
            let _ = thread.join();
        }
        self.database = None;
    }
}

impl Drop for RespServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn engine_options() -> dyno_txn_api::Options {
    dyno_txn_api::Options {
        deadline: DEADLINE,
        ..Default::default()
    }
}

/// Runs the server on a thread of its own.
fn run_in_thread(
    database: Arc<dyn Database>,
    mut front: Box<dyn FrontEnd>,
    window: usize,
) -> Result<JoinHandle<()>, RespError> {
    let (started, start) = mpsc::sync_channel(1);
    let run = move || match database.pipeline(window, &engine_options()) {
        Ok(mut pipeline) => {
            // The receiver waits until this is sent, so sending cannot fail.
            let _ = started.send(Ok(()));
            let wakes = pipeline.wake_on(front.descriptor()).is_ok();
            while front.step(&mut *pipeline) != Step::Over {
                wait(&mut *front, &mut *pipeline, wakes);
            }
        }
        Err(error) => {
            let _ = started.send(Err(error));
        }
    };
    let thread = thread::Builder::new().name("resp".to_owned()).spawn(run);
    let thread = thread.map_err(RespError::Thread)?;
    match start.recv() {
        Ok(started) => started?,
        // The thread has panicked, and has said so on standard error.
        Err(_) => return Err(RespError::Thread(io::ErrorKind::Other.into())),
    }
    Ok(thread)
}

/// Waits for sockets and for answers of the engine, and takes the answers. `wakes` says whether the
/// pipeline's wait ends when a socket has something.
fn wait(front: &mut dyn FrontEnd, pipeline: &mut dyn Pipeline, wakes: bool) {
    if pipeline.outstanding() == 0 {
        let mut socket = [PollFd::from_borrowed_fd(front.descriptor(), PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: TICK.as_nanos() as i64,
        };
        // If it fails, the next step does, too, and says why.
        let _ = poll(&mut socket, Some(&timeout));
        return;
    }
    let mut wait = if wakes { TICK } else { SHORT };
    while let Some((ticket, answer)) = pipeline.next(wait) {
        wait = Duration::ZERO;
        front.answered(pipeline, ticket, answer);
    }
}
