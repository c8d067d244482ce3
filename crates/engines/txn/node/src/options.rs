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
    /// When its log record is on stable storage.
    #[default]
    Fsync,
    /// When all processes of role `persist` that are named hold its log record in memory.
    RemoteMemory,
    /// At once. Nothing survives the process.
    Memory,
}

impl Durability {
    /// The name in commands and configuration files.
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
                let text = format!(
                    "durability `{other}`: it must be `fsync`, `remote-memory` or `memory`"
                );
                Err(Error::new(Code::BadArgument, text))
            }
        }
    }
}

/// The share of one process in a database that is in several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The index of the process, from 0.
    pub part: u32,
    /// The number of processes, which is the same at all of them.
    pub of: u32,
    /// The addresses of all oracles, `HOST:PORT` each.
    pub join: Vec<String>,
    /// Where others reach this process, if that is not where it listens.
    pub advertise: Option<String>,
}

/// How [`crate::open`] runs the engine (`local:`), or reaches it (`dyno://`).
#[derive(Clone)]
pub struct OpenOptions {
    /// Functions that clients may call. For `local:` alone: a server has its own.
    pub procedures: Procedures,
    /// The engine runs one thread on each of these cores. If there are none, it runs one thread,
    /// which the system may move.
    pub cores: Vec<usize>,
    /// Partitions of a new directory, by default one for each thread. A directory keeps its number.
    pub partitions: Option<u32>,
    /// Whether a database is created in a directory that has none. Otherwise such a directory is
    /// refused.
    pub create: bool,
    /// When a commit is answered. A directory must be opened with what it was made with.
    pub durability: Durability,
    /// Bytes of rows, versions and indexes of all partitions together. Writes beyond this are
    /// refused.
    pub memory_bytes: u64,
    /// How long a version of a row can be read after a newer one has replaced it.
    pub retention: Duration,
    /// Checkpoint a partition after its log has grown by this many bytes, or by half the size of
    /// its rows if that is more. A checkpoint lets the log reuse its segments.
    pub checkpoint_bytes: u64,
    /// Bytes of a segment of the log, which has at most 64 of them.
    pub segment_bytes: u64,
    /// For `remote-memory`: the addresses of the processes of role `persist`, `HOST:PORT` each.
    /// Each of them holds the whole log.
    pub persist: Vec<String>,
    /// The secret of the server, for `dyno://`, and of other processes of the database.
    pub token: Option<String>,
    /// TLS for connections to a server (`dyno://`) and to other processes of the database.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Whether a connection within this machine may use shared memory.
    pub ring: bool,
    /// How long threads spin for work before they sleep, because waking one costs some 50 us.
    /// Threads of a client spin for their answers only while that leaves a processor to the engine;
    /// further ones sleep at once.
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
    /// The number of threads of an engine with these options.
    pub fn threads(&self) -> usize {
        self.cores.len().max(1)
    }
}
