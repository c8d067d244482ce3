//! The running engine: threads, each with its partitions, their logs and its connections.
//!
//! | file | what |
//! |---|---|
//! | `start` | threads are started, recover, learn of each other |
//! | `core` | one thread: what happens in a pass |
//! | `work` | its partitions, and where their messages go |
//! | `together` | one-shots of one pass |
//! | `door`, `answers` | what clients say and hear |
//! | `mail` | between threads |
//! | `journal`, `pieces`, `checkpoint`, `recovery` | a partition's log |
//! | `oracle`, `given` | time and stamps; which one a connection was given |
//! | `elsewhere` | what goes to other processes and comes from them |
//! | `layout` | which thread of which process has a partition |
//! | `figures`, `pin` | counters; binding a thread to a core |

mod answers;
mod checkpoint;
mod core;
mod door;
mod elsewhere;
mod figures;
mod given;
mod journal;
mod layout;
mod mail;
mod oracle;
mod pieces;
mod pin;
pub(crate) mod recovery;
mod start;
mod together;
mod work;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use dyno_net::{Address, Port, PortOptions};
use dyno_serve::Token;
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_log::{Checkpointer, Lsn};

use self::figures::{Figures, sums};
use self::mail::Hold;
use self::oracle::Oracle;
use crate::backups::Desk;
use crate::directory::Directory;
use crate::error::{of_net, unavailable};
use crate::hello::{MOST_BODY_BYTES, Welcome};
use crate::member::Member;
use crate::options::Durability;
use crate::persist::Remote;

pub(crate) use self::figures::NAMES as FIGURE_NAMES;
pub(crate) use self::layout::Layout;
pub(crate) use self::mail::{Mail, Mate};
pub(crate) use self::oracle::Time;
pub(crate) use self::pieces::Joiner;
pub(crate) use self::pin::pin;

/// The size of each direction of a ring within the process.
pub(crate) const RING_BYTES: u32 = 2 << 20;

/// What all threads see.
pub(crate) struct Shared {
    pub time: Time,
    pub oracle: Arc<Oracle>,
    pub stopping: AtomicBool,
    pub token: Option<Token>,
    pub durability: Durability,
    pub figures: Vec<Figures>,
    /// Processes that keep the logs.
    pub remote: Option<Arc<Remote>>,
    /// Other processes that the database lies in.
    pub member: Option<Arc<Member>>,
    failure: Mutex<Option<String>>,
    last_note: Mutex<Option<String>>,
    /// Backups under way: checkpoints wait for them.
    backups: AtomicUsize,
    /// Where clients ask for backups, if they may.
    pub desk: OnceLock<Arc<Desk>>,
}

impl Shared {
    /// A thread cannot go on, and so nor can the others.
    pub fn fail(&self, why: String) {
        lock(&self.failure).get_or_insert(why);
        self.stopping.store(true, Ordering::Release);
    }

    /// Something that people should know and that ends nothing.
    pub fn note(&self, what: String) {
        *lock(&self.last_note) = Some(what);
    }

    /// The last of them.
    pub fn last_note(&self) -> Option<String> {
        lock(&self.last_note).clone()
    }

    pub fn may_checkpoint(&self) -> bool {
        self.backups.load(Ordering::Acquire) == 0
    }
}

/// An engine in this process.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    directory: Directory,
    layout: Layout,
    mates: Vec<Mate>,
    threads: Vec<JoinHandle<Result<()>>>,
    checkpointers: Vec<Checkpointer>,
    address: Option<Address>,
}

impl Engine {
    /// What a client is told of it.
    pub fn welcome(&self) -> Welcome {
        Welcome {
            cores: self.mates.len() as u32,
            partitions: self.directory.partitions,
            durability: self.directory.durability,
        }
    }

    /// Which partitions it has.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> Option<&Address> {
        self.address.as_ref()
    }

    /// A connection to one of its threads.
    pub fn connect(&self, core: usize) -> Result<Port> {
        if let Some(why) = self.failure() {
            return Err(unavailable(format!("the engine has stopped: {why}")));
        }
        let (near, far) = Port::pair(RING_BYTES, &port_options()).map_err(of_net)?;
        match self.mates[core].post(Mail::Port(Box::new(far), false)) {
            true => Ok(near),
            false => Err(unavailable("the engine has stopped, or has too much to do")),
        }
    }

    /// Why it has stopped by itself.
    pub fn failure(&self) -> Option<String> {
        lock(&self.shared.failure).clone()
    }

    /// The last thing that went wrong without ending it, such as a checkpoint that could not be written.
    pub fn last_note(&self) -> Option<String> {
        self.shared.last_note()
    }

    /// Sums over all partitions, by name.
    pub fn stats(&self) -> Vec<(String, u64)> {
        sums(&self.shared.figures)
    }

    /// A figure of a partition, by its place in [`FIGURE_NAMES`].
    pub fn figure(&self, partition: usize, at: usize) -> u64 {
        self.shared.figures[partition].get(at)
    }

    /// Copies everything that is durable at one moment into a new directory, while it runs.
    pub fn backup(&self, target: &Path) -> Result<()> {
        if self.shared.member.is_some() {
            let text = "a backup of a database in several processes would not be of one moment";
            return Err(Error::new(Code::NotSupported, text));
        }
        if self.directory.durability != Durability::Fsync {
            let text = format!(
                "a backup copies files, and durability `{}` has none",
                self.directory.durability
            );
            return Err(Error::new(Code::NotSupported, text));
        }
        self.shared.backups.fetch_add(1, Ordering::AcqRel);
        let done = self
            .cut()
            .and_then(|ends| crate::backup::copy(self, &ends, target));
        self.shared.backups.fetch_sub(1, Ordering::AcqRel);
        done
    }

    /// From now on clients may ask for backups there.
    pub fn open_desk(&self, desk: Arc<Desk>) {
        // A second one does not replace the first; there is none.
        let _ = self.shared.desk.set(desk);
    }

    /// Where all logs end at one moment. What was voted for and decided by then is in all of them or in
    /// none, for a decision becomes durable after its votes.
    fn cut(&self) -> Result<Vec<Lsn>> {
        let hold = Arc::new(Hold::new());
        for mate in &self.mates {
            mate.post(Mail::Hold(hold.clone()));
        }
        let look = || {
            self.checkpointers
                .iter()
                .map(Checkpointer::durable)
                .collect()
        };
        let cut = hold.look(self.mates.len(), look);
        cut.ok_or_else(|| unavailable("the engine has too much to do for a backup: try again"))
    }

    pub(crate) fn checkpointer(&self, partition: usize) -> &Checkpointer {
        &self.checkpointers[partition]
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Makes everything durable that was begun, and stops.
    pub fn stop(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        self.shared.stopping.store(true, Ordering::Release);
        for mate in &self.mates {
            mate.waker.wake();
        }
        let mut ended = Ok(());
        for thread in self.threads.drain(..) {
            let result = thread.join();
            let panicked = || Err(unavailable("a thread of the engine panicked"));
            ended = ended.and(result.unwrap_or_else(|_| panicked()));
        }
        ended
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Who wants to know how it ended calls `stop`; the log holds all that was promised either way.
        drop(self.join());
    }
}

/// Bounds of connections to clients.
pub(crate) fn port_options() -> PortOptions {
    PortOptions {
        most_body_bytes: MOST_BODY_BYTES,
        outbox_bytes: 8 << 20,
        ..PortOptions::default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
