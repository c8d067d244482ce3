//! The engine of one invocation: started empty, opened, and removed at the end.

use std::path::{Path, PathBuf};

use dyno_tpcc::Layout;
use dyno_txn_api::{Database, Target};
use dyno_txn_node::{Durability, Role};
use dyno_txn_open::{DatabaseOptions, open};
use dyno_txn_postgres::Isolation;

use super::TpccError;
use super::database_options;
use crate::pubsub::Server;
use crate::txn::{DynoProcesses, DynoServer, EtcdNodes};

/// Which engine, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Which {
    /// Our engine, in this process.
    Local,
    /// Our engine, in a process of its own.
    Served {
        /// Whether clients use shared memory instead of TCP.
        ring: bool,
        /// Processes that share the database; with several there is an oracle beside them.
        servers: usize,
    },
    /// PostgreSQL in a private cluster, with the settings that our log engine advises.
    Postgres(Isolation),
    /// An etcd cluster of this many nodes.
    Etcd(usize),
}

/// The options of our engine.
#[derive(Debug, Clone)]
pub(super) struct Ours {
    pub durability: Durability,
    /// Threads, each pinned to a core if there are several.
    pub cores: usize,
    pub memory_bytes: u64,
    /// Checkpoint a partition after its log has grown by this much; 0 for the engine's default.
    pub checkpoint_bytes: u64,
}

/// A running engine and the client that is connected to it.
pub(super) struct Engine {
    /// Declared first, so that it is closed before its server stops.
    db: Box<dyn Database>,
    /// How it stores the lines of orders.
    pub layout: Layout,
    /// A description of what it runs on, for people.
    pub says: String,
    _server: Process,
    /// The process that holds the log with durability `remote-memory`. Declared last, so that it
    /// stops last.
    _persist: Option<DynoServer>,
}

/// The process to stop when an invocation ends.
enum Process {
    None,
    Served { _server: DynoServer },
    Several { _servers: DynoProcesses },
    Postgres { _server: Box<Server> },
    Etcd { _nodes: EtcdNodes },
}

impl Engine {
    /// Starts the engine in an empty directory, with room for `connections`.
    pub fn start(
        which: &Which,
        ours: &Ours,
        connections: usize,
        scratch: &Path,
    ) -> Result<Engine, TpccError> {
        let mut how = DatabaseOptions {
            durability: ours.durability,
            cores: match ours.cores {
                0 | 1 => Vec::new(),
                cores => (0..cores).collect(),
            },
            memory_bytes: ours.memory_bytes,
            checkpoint_bytes: (ours.checkpoint_bytes > 0).then_some(ours.checkpoint_bytes),
            ..database_options()?
        };
        let data = scratch.join("rows");
        let persist = persist(which, ours, scratch)?;
        how.persist = persist.iter().map(DynoServer::address).collect();
        let (target, server, says) = match which {
            Which::Local => {
                let says = format!("{} threads in this process", ours.cores.max(1));
                (Target::Local(data), Process::None, says)
            }
            Which::Served { ring, servers } if *servers > 1 => {
                how.ring = *ring;
                let started = several(ours, *servers, scratch)?;
                let says = format!("{servers} servers of {} threads", ours.cores.max(1));
                (
                    started.target(),
                    Process::Several { _servers: started },
                    says,
                )
            }
            Which::Served { ring, .. } => {
                how.ring = *ring;
                let server = served(ours, &how, &data)?;
                let way = if *ring { "shared memory" } else { "TCP" };
                let says = format!("{} threads, over {way}", ours.cores.max(1));
                (server.target(), Process::Served { _server: server }, says)
            }
            Which::Postgres(isolation) => {
                how.isolation = *isolation;
                let server = Server::start(scratch, connections, 1)?;
                let says = format!("{}, {}", server.describe()?, isolation.name());
                let target = Target::Postgres(server.dsn().text());
                let server = Box::new(server);
                (target, Process::Postgres { _server: server }, says)
            }
            Which::Etcd(count) => {
                let nodes = EtcdNodes::start(scratch, *count)?;
                let says = format!("{count} nodes");
                (nodes.target(), Process::Etcd { _nodes: nodes }, says)
            }
        };
        // The order of the fields is the order of dropping: the client closes, then its server
        // stops, then the process that holds the server's log.
        Ok(Engine {
            db: open(&target, &how)?,
            layout: Layout::for_target(&target),
            says,
            _server: server,
            _persist: persist,
        })
    }

    /// The open database, on which the transactions run.
    pub fn db(&self) -> &dyn Database {
        &*self.db
    }

    /// The engine's counter of this name: `memory_bytes` for rows, `checkpoints`.
    pub fn stat(&self, name: &str) -> Result<Option<u64>, TpccError> {
        let mut stats = self.db.stats()?.into_iter();
        let found = stats.find(|(known, _)| known == name);
        Ok(found.map(|(_, value)| value))
    }
}

fn served(ours: &Ours, how: &DatabaseOptions, data: &Path) -> Result<DynoServer, TpccError> {
    let cores: Vec<String> = how.cores.iter().map(ToString::to_string).collect();
    let mut words = options(ours);
    for (word, list) in [("--cores", cores), ("--persist", how.persist.clone())] {
        if !list.is_empty() {
            words.extend([word.to_owned(), list.join(",")]);
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(DynoServer::start(&program()?, data, &words)?)
}

/// Starts several servers that share the warehouses, each with `ours.cores` threads.
fn several(ours: &Ours, count: usize, scratch: &Path) -> Result<DynoProcesses, TpccError> {
    let words = options(ours);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let cores = ours.cores.max(1);
    Ok(DynoProcesses::start(
        &program()?,
        scratch,
        count,
        cores,
        &words,
    )?)
}

/// The options of a server of ours that do not depend on how many there are.
fn options(ours: &Ours) -> Vec<String> {
    let mut words = vec![
        "--durability".to_owned(),
        ours.durability.to_string(),
        "--memory".to_owned(),
        ours.memory_bytes.to_string(),
    ];
    if ours.checkpoint_bytes > 0 {
        words.extend(["--checkpoint".to_owned(), ours.checkpoint_bytes.to_string()]);
    }
    words
}

/// Starts the process that holds the log in its memory, if the durability needs one.
fn persist(which: &Which, ours: &Ours, scratch: &Path) -> Result<Option<DynoServer>, TpccError> {
    let is_ours = matches!(which, Which::Local | Which::Served { .. });
    if !is_ours || ours.durability != Durability::RemoteMemory {
        return Ok(None);
    }
    // A log and the checkpoint that replaces it exist together for a while.
    let memory = ours.memory_bytes.saturating_mul(2).to_string();
    let (log, more) = (scratch.join("persist.log"), ["--memory", &memory]);
    let server = DynoServer::start_role(&program()?, Role::Persist, &log, &more)?;
    Ok(Some(server))
}

fn program() -> Result<PathBuf, TpccError> {
    std::env::current_exe()
        .map_err(|error| TpccError::Server(format!("this program's file: {error}")))
}
