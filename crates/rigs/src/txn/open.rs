//! Opens a database by its address, with any of the engines.

use std::sync::Arc;
use std::time::Duration;

use dyno_net::rustls::ClientConfig;
use dyno_tpcc::transactions;
use dyno_txn_api::{Database, Procedures, Result, Target};
use dyno_txn_etcd::{Etcd, EtcdOptions};
use dyno_txn_node::{Durability, OpenOptions};
use dyno_txn_postgres::{Isolation, Postgres, PostgresOptions};

use crate::tpcc::functions;

/// The options of opening that an address does not hold.
#[derive(Debug, Clone)]
pub struct OpenHow {
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
}

impl Default for OpenHow {
    fn default() -> OpenHow {
        OpenHow {
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
        }
    }
}

/// Opens it, with the procedures of our workloads.
///
/// # Errors
/// What the engine says.
pub fn open(target: &Target, how: &OpenHow) -> Result<Box<dyn Database>> {
    match target {
        Target::Local(_) | Target::Dyno(_) => dyno_txn_node::open(target, options(how)?),
        Target::Etcd(addresses) => Ok(Box::new(Etcd::open(
            addresses,
            EtcdOptions {
                connect_wait: Duration::from_secs(2),
                procedures: procedures()?,
                ..EtcdOptions::default()
            },
        )?)),
        Target::Postgres(dsn) => Ok(Box::new(Postgres::open(
            dsn,
            PostgresOptions {
                isolation: how.isolation,
                procedures: procedures()?,
                functions: functions(),
                ..PostgresOptions::default()
            },
        )?)),
    }
}

/// Copies a database of our engine while it runs: into a directory, or, of a server, below its
/// folder of backups.
///
/// # Errors
/// What the engine says.
pub fn backup(target: &Target, how: &OpenHow, to: &str) -> Result<()> {
    dyno_txn_node::backup(target, options(how)?, to)
}

fn options(how: &OpenHow) -> Result<OpenOptions> {
    let default = OpenOptions::default();
    Ok(OpenOptions {
        checkpoint_bytes: how.checkpoint_bytes.unwrap_or(default.checkpoint_bytes),
        procedures: procedures()?,
        create: how.create,
        cores: how.cores.clone(),
        durability: how.durability,
        persist: how.persist.clone(),
        memory_bytes: how.memory_bytes,
        token: how.token.clone(),
        tls: how.tls.clone(),
        ring: how.ring,
        ..default
    })
}

/// What a server of ours can be asked to run.
///
/// # Errors
/// When two have one name.
pub fn procedures() -> Result<Procedures> {
    // Those of the checks too, because they do nothing that a client may not do anyway.
    let mut procedures = dyno_txn_check::work::procedures()?;
    transactions::register(&mut procedures)?;
    Ok(procedures)
}
