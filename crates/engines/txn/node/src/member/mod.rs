//! A database in several processes: each has its share of the partitions (role `partitions`), and oracles (role
//! `oracle`) give stamps to all and know where everybody is.
//!
//! | file | what |
//! |---|---|
//! | `map` | which process has which partitions, and where it listens |
//! | `links` | a thread's connections to other processes |
//! | `asker` | stamps from the oracles, in batches |
//! | `oracle` | the process of role `oracle` |
//! | `identity` | what a directory remembers of its share |
//!
//! Partition P is the one of process P modulo the number of processes. A process says to every oracle it was told
//! of who it is; an oracle tells all of them, and clients, the map, which is nowhere else: an oracle that starts
//! learns it again. What oracles promise is kept by the partitions' logs.

mod asker;
mod identity;
mod links;
mod map;
mod oracle;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use crate::options::OpenOptions;

pub(crate) use asker::{Asker, Want};
pub(crate) use identity::identity;
pub(crate) use links::Links;
pub(crate) use map::{Map, Part};
pub(crate) use oracle::start as start_oracle;

/// What all threads of a process know of the others.
pub(crate) struct Member {
    /// Its share: this one, of so many.
    pub part: u32,
    pub of: u32,
    pub partitions: u32,
    pub threads: u32,
    /// Of its directory.
    pub identity: u64,
    /// Where others reach it.
    pub address: String,
    /// Where oracles are.
    pub oracles: Vec<String>,
    /// How others are called.
    pub options: OpenOptions,
    /// It has had a stamp of an oracle, and serves.
    pub begun: AtomicBool,
    map: Mutex<Arc<Map>>,
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
            map: Mutex::new(Arc::new(Map::unknown(partitions, of))),
        }
    }

    /// Where everybody is, as far as it is known.
    pub fn map(&self) -> Arc<Map> {
        self.map
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// An oracle has said where everybody is. One of another form is not of this database.
    pub fn learn(&self, map: Map) {
        if map.partitions == self.partitions && map.parts.len() == self.of as usize {
            *self.map.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        }
    }
}
