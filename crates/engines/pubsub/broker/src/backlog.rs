//! Fetches of consumers that are behind, which wait until there is memory for their rows. The
//! memory is shared fairly: a connection that holds none goes before one that holds some, one
//! connection holds no more than an eighth, and what one fetch may bring shrinks as the memory
//! fills.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_net::{Charge, Share};
use parking_lot::{Condvar, Mutex};

use crate::behind::Behind;
use crate::fair::Lines;

/// The most fetches of one connection that wait; one for each partition that a client may well
/// read.
const MOST_EACH: usize = 1024;
/// The share of the memory that one connection may hold.
const PARTS: usize = 8;
/// A fetch may bring a quarter of the memory that is free, but always this much.
const LEAST_BYTES: usize = 64 << 10;

/// What one connection holds of the memory for rows of consumers that are behind.
#[derive(Debug)]
pub struct Reading {
    pub connection: u64,
    held: Arc<Share>,
}

impl Reading {
    /// Bytes of rows that the connection's client has not taken yet.
    pub fn held_bytes(&self) -> usize {
        self.held.used_bytes()
    }
}

/// The memory that the rows of one fetch take, in the connection's part and in the whole.
#[derive(Debug)]
pub struct FetchCharge {
    own: Charge,
    all: Charge,
}

impl FetchCharge {
    /// Gives back what is more than `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.own.shrink_to(bytes);
        self.all.shrink_to(bytes);
    }
}

/// What a reader does with a fetch.
pub enum FetchTask {
    /// There is room for this many bytes of rows.
    Read(Behind, usize, FetchCharge),
    /// Other connections held the memory for too long, so the fetch is refused.
    Late(Behind),
}

/// The fetches that wait, and the memory that they wait for.
pub struct Backlog {
    state: Mutex<State>,
    /// Counts changes. A lock of its own, under which nothing else happens: memory is released
    /// under all kinds of locks, and a thread that releases it must not wait for one that asks
    /// outboxes and shares.
    changes: Mutex<u64>,
    changed: Condvar,
    memory: Arc<Share>,
    /// How long a fetch waits for memory that others hold.
    patience: Duration,
}

#[derive(Default)]
struct State {
    lines: Lines<Behind>,
    stopped: bool,
}

impl Backlog {
    /// An empty list of fetches that share `memory`.
    pub fn new(memory: &Arc<Share>, patience: Duration) -> Arc<Backlog> {
        let backlog = Arc::new(Backlog {
            state: Mutex::default(),
            changes: Mutex::default(),
            changed: Condvar::new(),
            memory: Arc::clone(memory),
            patience,
        });
        let waits = Arc::downgrade(&backlog);
        memory.call_on_room(move || {
            if let Some(backlog) = waits.upgrade() {
                backlog.wake();
            }
        });
        backlog
    }

    /// The account of a new connection.
    pub fn reading(&self, connection: u64) -> Arc<Reading> {
        Arc::new(Reading {
            connection,
            held: Share::new(self.memory.limit_bytes() / PARTS),
        })
    }

    /// Puts a fetch into its connection's line. Returns it if the line is full or the list is
    /// stopped.
    pub fn push(&self, job: Behind) -> Result<(), Behind> {
        let connection = job.waiter.reading.connection;
        let mut state = self.state.lock();
        if state.stopped || state.lines.waiting(connection) >= MOST_EACH {
            return Err(job);
        }
        state.lines.push(connection, job);
        drop(state);
        self.wake();
        Ok(())
    }

    /// Waits for a fetch that can be served, or that has waited for too long. `None` means that the
    /// list is stopped.
    pub fn next(&self) -> Option<FetchTask> {
        loop {
            // Read before we look: a change that comes while we look ends the wait at once.
            let before = *self.changes.lock();
            let wait = {
                let mut state = self.state.lock();
                if state.stopped {
                    return None;
                }
                let is_gone = |job: &Behind| job.waiter.ack.outbox.is_closed();
                while state.lines.pop_if(is_gone).is_some() {}
                match self.choose(&mut state.lines) {
                    Ok(work) => return Some(work),
                    Err(wait) => wait,
                }
            };
            let same = |changes: &mut u64| *changes == before;
            let mut changes = self.changes.lock();
            match wait {
                Some(wait) => _ = self.changed.wait_while_for(&mut changes, same, wait),
                None => self.changed.wait_while(&mut changes, same),
            }
        }
    }

    /// Returns the fetch whose turn it is. Otherwise returns how much longer the first one that
    /// waits for memory has patience.
    fn choose(&self, lines: &mut Lines<Behind>) -> Result<FetchTask, Option<Duration>> {
        let now = Instant::now();
        let holds_nothing = |job: &Behind| job.waiter.reading.held_bytes() == 0;
        // While one that holds nothing waits for room, those that hold some must not take it away.
        let some_hold_nothing = lines.find(holds_nothing).is_some();
        let fits = |job: &Behind| {
            let held = &job.waiter.reading.held;
            if some_hold_nothing {
                held.used_bytes() == 0
            } else {
                held.used_bytes() < held.limit_bytes()
            }
        };
        let Some(first) = lines.find(fits) else {
            return Err(None);
        };
        let (connection, bytes) = (first.waiter.reading.connection, self.bytes_for(first));
        let late = first.since + self.patience;
        // What a connection holds may change while we look, so the fetch is named by its connection
        // from here on. It is charged before it leaves its line, or it would lose its turn when
        // there is no room.
        let is_it = |job: &Behind| job.waiter.reading.connection == connection;
        let Some(all) = self.memory.try_charge(bytes) else {
            if late > now {
                return Err(Some(late - now));
            }
            return lines.pop_if(is_it).map(FetchTask::Late).ok_or(None);
        };
        let own = first.waiter.reading.held.charge(bytes);
        let charge = FetchCharge { own, all };
        let job = lines.pop_if(is_it).ok_or(None)?;
        Ok(FetchTask::Read(job, bytes, charge))
    }

    fn bytes_for(&self, job: &Behind) -> usize {
        let free = self
            .memory
            .limit_bytes()
            .saturating_sub(self.memory.used_bytes());
        let held = &job.waiter.reading.held;
        let own = held.limit_bytes().saturating_sub(held.used_bytes());
        let most = (free / 4).min(own).max(LEAST_BYTES);
        job.waiter.most_bytes.min(most)
    }

    /// Room for rows that are longer than was thought: a row may be longer than a fetch asks for.
    pub fn charge_for(&self, reading: &Reading, bytes: usize) -> FetchCharge {
        FetchCharge {
            own: reading.held.charge(bytes),
            all: self.memory.charge(bytes),
        }
    }

    fn wake(&self) {
        *self.changes.lock() += 1;
        self.changed.notify_all();
    }

    /// Refuses further fetches and hands none out. Returns those that waited, for the caller to
    /// refuse.
    pub fn stop(&self) -> Vec<Behind> {
        let mut state = self.state.lock();
        state.stopped = true;
        let waited = state.lines.drain();
        drop(state);
        self.wake();
        waited
    }
}
