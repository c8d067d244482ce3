//! A database in several processes: each has its share of the partitions (role `partitions`), and
//! oracles (role `oracle`) issue timestamps to all and know which process is where.
//!
//! | file | what |
//! |---|---|
//! | `cluster_map` | which process hosts which partitions, and where it listens |
//! | `links` | a thread's connections to other processes |
//! | `timestamps` | requests timestamps from the oracles, in batches |
//! | `oracle` | the process of role `oracle` |
//! | `identity` | what a directory remembers of its share |
//!
//! Process P modulo the number of processes hosts partition P. A process introduces itself to every
//! oracle that it was started with, and an oracle sends the map to all of them and to clients. The
//! map is stored nowhere: an oracle that starts learns it again. What oracles promise is kept in
//! the partitions' logs.

mod cluster_map;
mod identity;
mod links;
mod oracle;
mod timestamps;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use crate::options::OpenOptions;

pub(crate) use cluster_map::{ClusterMap, Process};
pub(crate) use identity::identity;
pub(crate) use links::Links;
pub(crate) use oracle::start as start_oracle;
pub(crate) use timestamps::{TimestampRequests, Waiter};

/// A process of a database in several processes: what it says of itself, and what it knows of the
/// others. Shared by its threads.
pub(crate) struct Member {
    /// The index of the process, from 0.
    pub part: u32,
    /// The number of processes.
    pub of: u32,
    /// Partitions of the whole database.
    pub partitions: u32,
    /// Threads of this process.
    pub threads: u32,
    /// That of its directory. An oracle notices by it when another directory comes as the same
    /// part.
    pub identity: u64,
    /// Where others reach it.
    pub address: String,
    /// Where oracles are.
    pub oracles: Vec<String>,
    /// How it connects to others.
    pub options: OpenOptions,
    /// Whether an oracle has given it a timestamp, so that it serves.
    pub begun: AtomicBool,
    map: Mutex<Arc<ClusterMap>>,
}

impl Member {
    #[allow(clippy::too_many_arguments, reason = "each is a field")]
    pub fn new(
        (part, of): (u32, u32),
        (partitions, threads): (u32, u32),
        identity: u64,
        address: String,
        oracles: Vec<String>,
        options: OpenOptions,
    ) -> Self {
        Self {
            part,
            of,
            partitions,
            threads,
            identity,
            address,
            oracles,
            options,
            begun: AtomicBool::new(false),
            map: Mutex::new(Arc::new(ClusterMap::unknown(partitions, of))),
        }
    }

    /// Where all processes are, as far as it is known.
    pub fn map(&self) -> Arc<ClusterMap> {
        self.map.lock().clone()
    }

    /// Takes the map that an oracle has sent. One of another form belongs to another database and
    /// is ignored: by its arithmetic messages would go to the wrong partitions.
    pub fn learn(&self, map: ClusterMap) {
        if map.partitions == self.partitions && map.processes.len() == self.of as usize {
            *self.map.lock() = Arc::new(map);
        }
    }
}
