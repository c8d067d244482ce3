//! How the threads of a process reach each other: commands in a bounded queue, and a barrier at
//! which all threads park.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_net::{Port, Waker};
use dyno_txn_api::{FrontEnd, Pipeline};
use dyno_txn_core::message::{Address, Message, PartitionId};

/// Commands that may wait for one thread. Further ones are dropped, which the protocol tolerates
/// because a message that is not answered is sent again.
pub(crate) const COMMANDS_MAX: usize = 16 << 10;
/// How long threads stay parked at most, and how long they may take to get there.
const PARKED_MAX: Duration = Duration::from_secs(4);
const GATHER_MAX: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_micros(50);

/// The other end of a connection that this process opened to another process of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PeerId {
    /// By its index in the list of oracles that the process was started with.
    Oracle(usize),
    Worker {
        process: usize,
        thread: usize,
    },
}

/// A message on its way to a partition or to the oracle.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub from: Address,
    pub to: PartitionId,
    pub message: Message,
}

/// A server that runs on a thread of the engine, and the connection by which it uses the engine
/// like any other client.
pub(crate) struct HostedFrontEnd {
    // Dropped first: the end of the front end tells its owner that nothing uses the engine any
    // more.
    pub pipeline: Box<dyn Pipeline + Send>,
    pub front_end: Box<dyn FrontEnd>,
}

/// What one thread asks of another.
pub(crate) enum Command {
    Deliver(Envelope),
    /// Serve an authenticated connection from now on.
    Adopt {
        port: Box<Port>,
        /// Whether the other end is a process of the database, and not a client.
        is_member: bool,
    },
    /// A connection to another process has been made.
    Connected(PeerId, Box<Port>),
    /// A store that was away is connected again.
    StoreConnected {
        store: usize,
        port: Box<Port>,
    },
    Park(Arc<ParkBarrier>),
    /// Run a server from now on.
    Host(HostedFrontEnd),
}

/// Makes a moment at which no log moves: every thread parks, the caller looks at the logs, all go
/// on.
#[derive(Debug)]
pub(crate) struct ParkBarrier {
    created: Instant,
    parked: AtomicUsize,
    over: AtomicBool,
}

impl ParkBarrier {
    pub fn new() -> Self {
        Self {
            created: Instant::now(),
            parked: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Blocks the calling thread until the moment is over. It also ends by itself: a caller that
    /// died while it held the barrier must not stop the engine for ever.
    pub fn park(&self) {
        self.parked.fetch_add(1, Ordering::AcqRel);
        while !self.over.load(Ordering::Acquire) && self.created.elapsed() < PARKED_MAX {
            thread::sleep(PAUSE);
        }
    }

    /// Calls `look` while all `threads` are parked. Returns `None` if they did not all arrive in
    /// time.
    pub fn run_while_parked<T>(&self, threads: usize, look: impl FnOnce() -> T) -> Option<T> {
        while self.parked.load(Ordering::Acquire) < threads && self.created.elapsed() < GATHER_MAX {
            thread::sleep(PAUSE);
        }
        let all = self.parked.load(Ordering::Acquire) == threads;
        // If `look` took so long that the threads went on by themselves, it saw logs that moved.
        let seen = all
            .then(look)
            .filter(|_| self.created.elapsed() < PARKED_MAX);
        self.over.store(true, Ordering::Release);
        seen
    }
}

/// A handle on a thread of the engine, as its peers hold it.
#[derive(Clone)]
pub(crate) struct PeerThread {
    pub sender: SyncSender<Command>,
    pub waker: Waker,
}

impl PeerThread {
    /// Sends a command and wakes the thread. Returns false if the command was dropped because the
    /// queue is full or the thread has ended. It never blocks: two threads that wait for room in
    /// each other's queue would wait for ever.
    pub fn send(&self, command: Command) -> bool {
        match self.sender.try_send(command) {
            Ok(()) => {
                self.waker.wake();
                true
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}
