//! Opens a database by its address, whichever engine is behind it.

use std::sync::Arc;
use std::time::Duration;

use dyno_net::rustls::ClientConfig;
use dyno_tpcc::transactions;
use dyno_txn_api::{Database, Procedures, Result, Target};
use dyno_txn_etcd::{Etcd, EtcdOptions};
use dyno_txn_node::{Durability, OpenOptions};
use dyno_txn_postgres::{Isolation, Postgres, PostgresOptions};

use crate::tpcc::functions;

/// What an address does not say.
#[derive(Debug, Clone)]
pub struct OpenHow {
    /// Of our engine in this process: whether a directory without a database gets a new one.
    pub create: bool,
    /// Of our engine in this process: when an answer is given.
    pub durability: Durability,
    /// Of our engine in this process, for `remote-memory`: processes that hold the log, `HOST:PORT`
    /// each.
    pub persist: Vec<String>,
    /// Of our engine in this process: one thread pinned to each; one thread that is not pinned when
    /// empty.
    pub cores: Vec<usize>,
    /// Of our engine in this process: bytes of all rows.
    pub memory_bytes: u64,
    /// Of our engine in this process: log of a partition after which it is written down whole; the
    /// engine's default when absent.
    pub checkpoint_bytes: Option<u64>,
    /// Shown to a server of ours.
    pub token: Option<String>,
    /// TLS with a server of ours.
    pub tls: Option<Arc<ClientConfig>>,
    /// Whether a server of ours on this host is talked to through shared memory.
    pub ring: bool,
    /// Of a database of PostgreSQL's wire: what transactions are kept apart by.
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
    // That of checks, which does nothing but what a client may do anyway.
    let mut procedures = dyno_txn_check::work::procedures()?;
    transactions::register(&mut procedures)?;
    Ok(procedures)
}
