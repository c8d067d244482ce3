//! How an engine is run and reached.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use dyno_net::rustls;
use dyno_txn_api::{Code, Error, Procedures};

/// When a commit is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When it is on stable storage.
    #[default]
    Fsync,
    /// When all processes of role `persist` that are named hold the bytes.
    RemoteMemory,
    /// At once: nothing survives the process.
    Memory,
}

impl Durability {
    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Fsync => "fsync",
            Durability::RemoteMemory => "remote-memory",
            Durability::Memory => "memory",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "fsync" => Ok(Durability::Fsync),
            "memory" => Ok(Durability::Memory),
            "remote-memory" => Ok(Durability::RemoteMemory),
            other => {
                let text =
                    format!("durability `{other}`: it is `fsync`, `remote-memory` or `memory`");
                Err(Error::new(Code::BadArgument, text))
            }
        }
    }
}

/// Which share of a database in several processes a process has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Which process it is, from 0.
    pub part: u32,
    /// Of how many: the same at all of them.
    pub of: u32,
    /// Where oracles are, `HOST:PORT` each, all of them.
    pub join: Vec<String>,
    /// Where others reach this process, when that is not where it listens.
    pub advertise: Option<String>,
}

/// How [`crate::open`] runs the engine (`local:`), or reaches it (`dyno://`).
#[derive(Clone)]
pub struct OpenOptions {
    /// Functions that clients may call; for `local:`, since a server has its own.
    pub procedures: Procedures,
    /// One thread of the engine for each, pinned to it; none: one thread, where the system likes it.
    pub cores: Vec<usize>,
    /// Partitions of a directory that is new; none: one for each thread. An old one keeps its number.
    pub partitions: Option<u32>,
    /// Whether a directory without a database gets a new one; otherwise it is refused.
    pub create: bool,
    /// When a commit is answered. A directory keeps what it was made with.
    pub durability: Durability,
    /// Bytes of rows, versions and indexes, over all partitions, from which on writes are refused.
    pub memory_bytes: u64,
    /// How long versions that were written over can still be read.
    pub retention: Duration,
    /// Log of a partition after which it is written down whole, so that the log can be used again; half the size of its
    /// rows, where that is more.
    pub checkpoint_bytes: u64,
    /// Length of the log's segments; at most 64 of them, which a checkpoint frees.
    pub segment_bytes: u64,
    /// For `remote-memory`: the processes of role `persist` that hold the log, `HOST:PORT` each. All of
    /// them hold all of it.
    pub persist: Vec<String>,
    /// The server's secret, for `dyno://`, and that of other processes of the database.
    pub token: Option<String>,
    /// TLS, for `dyno://` and to other processes of the database.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Whether a connection to this host may move to shared memory.
    pub ring: bool,
    /// How long threads spin for work before they sleep; waking one costs some 50 us. Threads of a client that wait for
    /// answers spin while they leave a processor to the engine; more of them sleep at once.
    pub spin: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            procedures: Procedures::new(),
            cores: Vec::new(),
            partitions: None,
            create: true,
            durability: Durability::Fsync,
            memory_bytes: 1 << 30,
            retention: Duration::from_secs(5),
            checkpoint_bytes: 512 << 20,
            segment_bytes: 64 << 20,
            persist: Vec::new(),
            token: None,
            tls: None,
            ring: true,
            spin: Duration::from_micros(100),
        }
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions")
            .field("cores", &self.cores)
            .field("partitions", &self.partitions)
            .field("durability", &self.durability)
            .field("memory_bytes", &self.memory_bytes)
            .field("persist", &self.persist)
            .field("token", &self.token.is_some())
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

impl OpenOptions {
    /// How many threads the engine has.
    pub fn threads(&self) -> usize {
        self.cores.len().max(1)
    }
}
