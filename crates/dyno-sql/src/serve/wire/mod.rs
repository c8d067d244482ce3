//! PostgreSQL's protocol, version 3, on the crate `pgwire`.
//!
//! The handlers of `datafusion-postgres` are not used, although its catalogue is. They keep one
//! session for all clients and the plan of a prepared statement, so that a statement would not see
//! what a load has committed since; their time limit ends with planning; a cancel request is not
//! heard while rows are sent; and a connection above the limit is closed without the code that says
//! why.

mod cancel;
mod extended;
mod frames;
mod messages;
mod parameters;
mod rows;
mod settings;
mod simple;
mod startup;
mod statements;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dyno_serve::Token;
use dyno_serve::rustls::ServerConfig;
use pgwire::api::RandomPidSecretKeyGenerator;
use pgwire::error::{ErrorInfo, PgWireError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use self::cancel::{Cancels, Registered};
pub(super) use self::settings::SETTINGS;
use self::statements::StatementParser;
use super::engine::Engine;
use super::refusal::Refusal;

/// The pause after an accept that failed, for example because the process is out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections above the limit that are open only to be told so, or to cancel a statement. Further
/// ones are closed without a word.
const OVER_LIMIT_MAX: usize = 64;

/// What all connections share.
pub struct Shared {
    engine: Arc<Engine>,
    token: Option<Token>,
    tls: Option<TlsAcceptor>,
    most_connections: usize,
    open: AtomicUsize,
    cancels: Cancels,
    keys: RandomPidSecretKeyGenerator,
    parser: Arc<StatementParser>,
}

impl Shared {
    /// Serves statements of `engine` to clients that know the token, if there is one.
    pub fn new(
        engine: Arc<Engine>,
        token: Option<Token>,
        tls: Option<Arc<ServerConfig>>,
        most_connections: usize,
    ) -> Self {
        Self {
            parser: Arc::new(StatementParser::new(Arc::clone(&engine))),
            engine,
            token,
            tls: tls.map(TlsAcceptor::from),
            most_connections,
            open: AtomicUsize::new(0),
            cancels: Cancels::default(),
            keys: RandomPidSecretKeyGenerator::default(),
        }
    }
}

/// One client, from its connection to its end.
struct Connection {
    shared: Arc<Shared>,
    peer: SocketAddr,
    /// Whether there was room for it.
    admitted: bool,
    /// Changes when the client asks on another connection to cancel what it runs on this one.
    cancelled: watch::Sender<u64>,
    registered: Registered,
}

impl Connection {
    /// Counts the connection, and says whether it is within the limit. `None` if there are too many
    /// even to be told so.
    fn open(shared: Arc<Shared>, peer: SocketAddr) -> Option<Self> {
        let before = shared.open.fetch_add(1, Ordering::AcqRel);
        let admitted = before < shared.most_connections;
        let accepted = before < shared.most_connections.saturating_add(OVER_LIMIT_MAX);
        shared.engine.counts().connections.add(1);
        if !admitted {
            shared.engine.counts().turned_away.add(1);
        }
        let connection = Self {
            shared,
            peer,
            admitted,
            cancelled: watch::Sender::new(0),
            registered: Registered::default(),
        };
        // Dropping the connection takes it off the counts again.
        accepted.then_some(connection)
    }

    /// A signal for a statement that starts now: only later requests to cancel reach it.
    fn cancellation(&self) -> watch::Receiver<u64> {
        self.cancelled.subscribe()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.cancels.forget(&self.registered);
        self.shared.open.fetch_sub(1, Ordering::AcqRel);
        self.shared.engine.counts().connections.add(-1);
    }
}

/// Accepts clients until `stop` changes, which ends all connections.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Ended tasks are taken out, so that the set does not grow with every client.
            Some(_) = connections.join_next() => continue,
            _ = stop.changed() => break,
        };
        match accepted {
            Ok((socket, peer)) => {
                if let Some(connection) = Connection::open(Arc::clone(&shared), peer) {
                    connections.spawn(converse(socket, connection));
                }
            }
            Err(error) => {
                // Without a pause, a lack of descriptors would make this loop use a processor.
                warn!("cannot accept a client: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn converse(socket: TcpStream, connection: Connection) {
    // The client sees that the connection is closed; the reason matters to an operator at most.
    if let Err(error) = messages::converse(socket, connection).await {
        debug!("a connection ended: {error}");
    }
}

/// A refusal as PostgreSQL's clients read it.
fn error(refusal: Refusal) -> PgWireError {
    refused("ERROR", refusal)
}

/// A refusal that ends the connection.
fn fatal(refusal: Refusal) -> PgWireError {
    refused("FATAL", refusal)
}

fn refused(severity: &str, refusal: Refusal) -> PgWireError {
    PgWireError::UserError(Box::new(ErrorInfo::new(
        severity.to_owned(),
        refusal.kind.sqlstate().to_owned(),
        refusal.message,
    )))
}
