//! Logs in other processes' memory: durability `remote-memory`.
//!
//! | file | what |
//! |---|---|
//! | `store_server` | the process that keeps them: role `persist` |
//! | `stores` | a thread's connections to such processes: what it sends them, and what they have |
//! | `recovery` | restores a partition from what the stores have |
//! | `reconnect` | connects again to a store that has gone |
//! | `state` | what this process's disk remembers: which logs, and which start wrote them last |
//!
//! Every store that is named holds all logs completely: a commit is answered when each of them has
//! confirmed its bytes. While a store is away, or is being brought up to date, writes are refused.
//! When it is back it gets a checkpoint from memory and the log behind it, and writes go on. A
//! restart reads the logs from any store that has everything that was answered, and is refused if
//! no store has.

mod reconnect;
mod recovery;
mod state;
mod store_server;
mod stores;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) use reconnect::reconnect;
pub(crate) use recovery::recover;
pub(crate) use state::State;
pub(crate) use store_server::start as start_store_server;
pub(crate) use stores::{CheckpointPart, LostStore, Stores};

/// What all threads of an engine know of its logs at the stores.
#[derive(Debug)]
pub(crate) struct RemoteLogs {
    /// The stores' addresses, as they were given.
    pub addresses: Vec<String>,
    pub state: State,
    /// Pairs of a log and a store that does not have it completely.
    lacking: AtomicUsize,
    /// Whether the disk names this start as one that may answer.
    active: AtomicBool,
}

impl RemoteLogs {
    /// For `logs` logs, which no store has yet.
    pub fn new(addresses: Vec<String>, state: State, logs: usize) -> Self {
        let lacking = AtomicUsize::new(addresses.len() * logs);
        Self {
            addresses,
            state,
            lacking,
            active: AtomicBool::new(false),
        }
    }

    /// Whether every store has every log completely. Otherwise nothing becomes durable.
    pub fn is_complete(&self) -> bool {
        self.lacking.load(Ordering::Acquire) == 0
    }

    /// Whether what all stores have may be called durable.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// Lets journals report records as durable from now on. Called when [`State::activate`] is on
    /// the disk.
    pub fn activate(&self) {
        self.active.store(true, Ordering::Release);
    }

    fn replica_completed(&self) {
        self.lacking.fetch_sub(1, Ordering::AcqRel);
    }

    fn replica_lost(&self) {
        self.lacking.fetch_add(1, Ordering::AcqRel);
    }
}
