//! The running engine: threads, each with its partitions, their logs and its connections.
//!
//! | file | what |
//! |---|---|
//! | `start` | starts the threads, which recover and get handles on each other |
//! | `worker` | one thread: what it does in a pass, and in which order |
//! | `requests` | frames that arrive: authentication, then messages by verb |
//! | `client_messages`, `peer_messages` | messages of clients, and of other processes |
//! | `pass` | borrows a thread's state for one pass, and carries messages within it |
//! | `clients`, `batch` | a thread's clients, and their one-shot transactions of one pass |
//! | `peers` | a thread's connections to other processes and to oracles |
//! | `shard` | a thread's partitions with their logs and checkpoints |
//! | `answers`, `last_timestamps` | frames on their way out; which connection has which timestamp |
//! | `shared`, `oracle`, `figures` | what all threads share: state, timestamps, counters |
//! | `checkpoint`, `journal`, `recovery` | a partition's log |
//! | `layout` | which thread of which process hosts a partition |
//!
//! Each file uses those below it in this table, and none above it.

mod answers;
mod batch;
mod checkpoint;
mod client_messages;
mod clients;
mod figures;
mod journal;
mod last_timestamps;
mod layout;
mod oracle;
mod pass;
mod peer_messages;
mod peers;
mod recovery;
mod requests;
mod shard;
mod shared;
mod start;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use dyno_net::{Address, Port, PortOptions};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_log::{Checkpointer, Cut};

use self::figures::sums;
use self::shared::Shared;
use crate::backup::copy;
use crate::backup_service::BackupService;
use crate::directory::Directory;
use crate::error::{from_net, unavailable};
use crate::hello::Welcome;
use crate::options::Durability;
use crate::ports::RING_BYTES;
use crate::threads::{Command, HostedFrontEnd, ParkBarrier, PeerThread};

pub(crate) use self::figures::NAMES as FIGURE_NAMES;
pub(crate) use self::layout::Layout;

/// An engine in this process. Dropping it stops it and makes durable what was begun.
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
    /// What a client is told when it connects.
    pub fn welcome(&self) -> Welcome {
        Welcome {
            cores: self.peer_threads.len() as u32,
            partitions: self.directory.partitions,
            durability: self.directory.durability,
        }
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether no other process hosts partitions of this database.
    pub fn has_all_partitions(&self) -> bool {
        self.layout.of == 1
    }

    /// Where it listens, with the port that the system chose. `None` if only this process reaches
    /// it.
    pub fn address(&self) -> Option<&Address> {
        self.address.as_ref()
    }

    /// Opens a connection to one of its threads, over a ring in memory.
    pub fn connect(&self, thread: usize, options: &PortOptions) -> Result<Port> {
        if let Some(why) = self.failure() {
            return Err(unavailable(format!("the engine has stopped: {why}")));
        }
        let (near, mut far) = Port::pair(RING_BYTES, options).map_err(from_net)?;
        // One such connection may serve all clients of a server in this process. A bound that many
        // long answers at once can reach would end it, and with it the requests of all of them.
        // What waits is bounded by what its user has under way.
        far.set_outbox_bytes(usize::MAX);
        let adopt = Command::Adopt {
            port: Box::new(far),
            is_member: false,
        };
        self.command(thread, adopt)?;
        Ok(near)
    }

    /// Has its first thread run a server. A thread runs one at most, and drops any further one.
    pub fn host(&self, front_end: HostedFrontEnd) -> Result<()> {
        self.command(0, Command::Host(front_end))
    }

    fn command(&self, thread: usize, command: Command) -> Result<()> {
        if self.peer_threads[thread].send(command) {
            Ok(())
        } else {
            Err(unavailable("the engine has stopped, or has too much to do"))
        }
    }

    /// Why it has stopped by itself, if it has.
    pub fn failure(&self) -> Option<String> {
        self.shared.lifecycle.failure()
    }

    /// The newest problem that the engine survived, such as a checkpoint that could not be written.
    pub fn last_note(&self) -> Option<String> {
        self.shared.lifecycle.last_note()
    }

    /// Sums of the figures over all partitions, by name.
    pub fn stats(&self) -> Vec<(String, u64)> {
        sums(&self.shared.figures)
    }

    /// One figure of one partition, by the indices of the partition in this process and of the name
    /// in [`FIGURE_NAMES`].
    pub fn figure(&self, local: usize, name: usize) -> u64 {
        self.shared.figures[local].get(name)
    }

    /// Copies everything that is durable at one moment into a new directory, while the engine runs.
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
        // Counted before the cuts and until the copy is over. The cuts keep segments, so that a
        // checkpoint which began meanwhile would free none of those: a full log would stay full,
        // and begin one after the other.
        self.shared.backups.fetch_add(1, Ordering::AcqRel);
        let partitions = self.directory.partitions;
        let done = self.cuts().and_then(|cuts| copy(&cuts, partitions, target));
        self.shared.backups.fetch_sub(1, Ordering::AcqRel);
        done
    }

    /// Lets clients ask for backups from now on.
    pub fn serve_backups(&self, service: Arc<BackupService>) {
        // It is called once; a second service would not replace the first.
        let _ = self.shared.backup_service.set(service);
    }

    /// The checkpoint and the durable part of each log, at one moment.
    ///
    /// A transaction over several partitions becomes durable in steps: its votes in all logs, then
    /// its decision in one. While no log moves, a decision that lies before these ends has all its
    /// votes before them too, so the copy holds the transaction whole. Ends that were read one
    /// after the other could include a decision and lack a vote. The checkpoints belong to that
    /// moment too: one that was committed after it can hold changes that the other logs lack.
    fn cuts(&self) -> Result<Vec<Cut>> {
        let barrier = Arc::new(ParkBarrier::new());
        for peer in &self.peer_threads {
            peer.send(Command::Park(barrier.clone()));
        }
        let look = || self.checkpointers.iter().map(Checkpointer::cut).collect();
        let cuts = barrier.run_while_parked(self.peer_threads.len(), look);
        cuts.ok_or_else(|| unavailable("the engine has too much to do for a backup: try again"))
    }

    /// Makes durable what was begun, and stops.
    ///
    /// # Errors
    /// The first thread that failed, or could not close a log.
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
        // A caller that wants to know how it ended calls `stop`. Everything that was answered is in
        // the log either way.
        drop(self.join());
    }
}
