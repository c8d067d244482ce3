//! Opens a database by its address: our engine in this process or on a server, etcd, or a database
//! with PostgreSQL's protocol. A program that uses one engine only opens that engine's crate.

use std::sync::Arc;
use std::time::Duration;

use dyno_net::rustls::ClientConfig;
use dyno_txn_api::{Database, Procedures, Result, Target};
use dyno_txn_etcd::{Etcd, EtcdOptions};
use dyno_txn_node::{Durability, OpenOptions};
use dyno_txn_postgres::{Function, Isolation, Postgres, PostgresOptions};

/// How long to wait for the first answer of an etcd node.
const ETCD_CONNECT_WAIT: Duration = Duration::from_secs(2);

/// The options of opening that an address does not hold. Each engine reads those that concern it.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// Our engine in this process: whether to create the database if the directory has none.
    pub create: bool,
    /// Our engine in this process: when a commit is acknowledged.
    pub durability: Durability,
    /// Our engine in this process, for `remote-memory`: the processes that hold the log, each as
    /// `HOST:PORT`.
    pub persist: Vec<String>,
    /// Our engine in this process: the cores that its threads are pinned to; empty for one thread
    /// that is not pinned.
    pub cores: Vec<usize>,
    /// Our engine in this process: memory for all rows, in bytes.
    pub memory_bytes: u64,
    /// Our engine in this process: checkpoint a partition after its log has grown by this much;
    /// `None` for the engine's default.
    pub checkpoint_bytes: Option<u64>,
    /// The token sent to a server of ours.
    pub token: Option<String>,
    /// The TLS configuration for a server of ours; `None` for plain TCP.
    pub tls: Option<Arc<ClientConfig>>,
    /// Whether to use shared memory with a server of ours on this host.
    pub ring: bool,
    /// Databases with PostgreSQL's protocol: the isolation level of transactions.
    pub isolation: Isolation,
    /// The procedures that can be called where transactions run in this process; a server of ours
    /// has its own.
    pub procedures: Procedures,
    /// Databases with PostgreSQL's protocol: procedures that are functions in the server, so that a
    /// call is one round trip. They take precedence over `procedures`.
    pub functions: Vec<Function>,
}

impl Default for DatabaseOptions {
    fn default() -> DatabaseOptions {
        DatabaseOptions {
            create: true,
            durability: Durability::Fsync,
            persist: Vec::new(),
            cores: Vec::new(),
            memory_bytes: 4 << 30,
            checkpoint_bytes: None,
            token: None,
            tls: None,
            ring: true,
            isolation: Isolation::default(),
            procedures: Procedures::new(),
            functions: Vec::new(),
        }
    }
}

/// Opens the database at `target`.
///
/// # Errors
/// The engine's own error, if the database is missing, damaged, locked or cannot be reached.
pub fn open(target: &Target, options: &DatabaseOptions) -> Result<Box<dyn Database>> {
    match target {
        Target::Local(_) | Target::Dyno(_) => dyno_txn_node::open(target, node_options(options)),
        Target::Etcd(addresses) => Ok(Box::new(Etcd::open(
            addresses,
            EtcdOptions {
                connect_wait: ETCD_CONNECT_WAIT,
                procedures: options.procedures.clone(),
                ..EtcdOptions::default()
            },
        )?)),
        Target::Postgres(dsn) => Ok(Box::new(Postgres::open(
            dsn,
            PostgresOptions {
                isolation: options.isolation,
                procedures: options.procedures.clone(),
                functions: options.functions.clone(),
                ..PostgresOptions::default()
            },
        )?)),
    }
}

/// Copies a running database of our engine to `to`: a new directory, or, on a server, a name below
/// its folder of backups.
///
/// # Errors
/// The engine's own error; databases of other engines cannot be copied.
pub fn backup(target: &Target, options: &DatabaseOptions, to: &str) -> Result<()> {
    dyno_txn_node::backup(target, node_options(options), to)
}

fn node_options(options: &DatabaseOptions) -> OpenOptions {
    let default = OpenOptions::default();
    OpenOptions {
        checkpoint_bytes: options.checkpoint_bytes.unwrap_or(default.checkpoint_bytes),
        procedures: options.procedures.clone(),
        create: options.create,
        cores: options.cores.clone(),
        durability: options.durability,
        persist: options.persist.clone(),
        memory_bytes: options.memory_bytes,
        token: options.token.clone(),
        tls: options.tls.clone(),
        ring: options.ring,
        ..default
    }
}
