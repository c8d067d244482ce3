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
mod oracle;
pub(crate) mod recovery;
mod shared;
mod start;
mod together;
mod work;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use dyno_net::{Address, Port};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_log::{Checkpointer, Lsn};

use self::figures::sums;
use self::shared::Shared;
use crate::backups::Desk;
use crate::directory::Directory;
use crate::error::{from_net, unavailable};
use crate::hello::Welcome;
use crate::options::Durability;
use crate::ports::{RING_BYTES, port_options};
use crate::threads::{Command, ParkBarrier, PeerThread};

pub(crate) use self::figures::NAMES as FIGURE_NAMES;
pub(crate) use self::layout::Layout;

/// An engine in this process.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    directory: Directory,
    layout: Layout,
    peer_threads: Vec<PeerThread>,
    threads: Vec<JoinHandle<Result<()>>>,
    checkpointers: Vec<Checkpointer>,
    address: Option<Address>,
}

impl Engine {
    /// What a client is told of it.
    pub fn welcome(&self) -> Welcome {
        Welcome {
            cores: self.peer_threads.len() as u32,
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
        let (near, far) = Port::pair(RING_BYTES, &port_options()).map_err(from_net)?;
        let adopt = Command::Adopt {
            port: Box::new(far),
            is_member: false,
        };
        match self.peer_threads[core].send(adopt) {
            true => Ok(near),
            false => Err(unavailable("the engine has stopped, or has too much to do")),
        }
    }

    /// Why it has stopped by itself.
    pub fn failure(&self) -> Option<String> {
        self.shared.lifecycle.failure()
    }

    /// The last thing that went wrong without ending it, such as a checkpoint that could not be written.
    pub fn last_note(&self) -> Option<String> {
        self.shared.lifecycle.last_note()
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
        let barrier = Arc::new(ParkBarrier::new());
        for peer in &self.peer_threads {
            peer.send(Command::Park(barrier.clone()));
        }
        let look = || {
            self.checkpointers
                .iter()
                .map(Checkpointer::durable)
                .collect()
        };
        let cut = barrier.run_while_parked(self.peer_threads.len(), look);
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
        self.shared.lifecycle.stop();
        for peer in &self.peer_threads {
            peer.waker.wake();
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
