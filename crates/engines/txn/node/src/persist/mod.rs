//! Logs in other processes' memory: durability `remote-memory`.
//!
//! | file | what |
//! |---|---|
//! | `keeper` | the process that keeps them: role `persist` |
//! | `stores` | a thread's connections to such processes: what it sends them, and what they have |
//! | `recovery` | from what they have back to a partition |
//! | `away` | connecting again to one that is gone |
//! | `state` | what is remembered on this process' disk: which logs, and who wrote them last |
//!
//! All processes that are named hold all of the log: a commit is answered when each of them has said that it
//! has the bytes. While one is away, or is being brought up, writes are refused; when it is back it gets a
//! checkpoint from memory and what follows, and writes go on. A restart reads from whichever has all that was
//! answered; it is refused when none has.

mod reconnect;
mod recovery;
mod state;
mod store_server;
mod stores;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) use reconnect::call_again;
pub(crate) use recovery::recover;
pub(crate) use state::State;
pub(crate) use store_server::start as start_store_server;
pub(crate) use stores::{CheckpointPart, Stores};

/// What all threads of an engine know of its stores.
#[derive(Debug)]
pub(crate) struct Remote {
    /// Their addresses, as they were given.
    pub addresses: Vec<String>,
    pub state: State,
    /// Pairs of a log and a store that does not have it whole.
    lacking: AtomicUsize,
    /// The disk says that this epoch is the one to look for: answers may go out.
    active: AtomicBool,
}

impl Remote {
    /// `logs` logs, which no store has yet.
    pub fn new(addresses: Vec<String>, state: State, logs: usize) -> Self {
        let lacking = AtomicUsize::new(addresses.len() * logs);
        Self {
            addresses,
            state,
            lacking,
            active: AtomicBool::new(false),
        }
    }

    /// Whether each store has each log whole.
    pub fn is_whole(&self) -> bool {
        self.lacking.load(Ordering::Acquire) == 0
    }

    /// Whether what all stores have may be called durable.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// It may, from now on.
    pub fn activate(&self) {
        self.active.store(true, Ordering::Release);
    }

    fn gained(&self) {
        self.lacking.fetch_sub(1, Ordering::AcqRel);
    }

    fn lost(&self) {
        self.lacking.fetch_add(1, Ordering::AcqRel);
    }
}
