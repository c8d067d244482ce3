//! Work that waits for another transaction's intent, and pushing. A younger transaction waits for
//! an older one for a bounded time and then pushes it; an older one pushes a younger one at once. A
//! push ends with one of the two aborted or decided, so that no two transactions wait for each
//! other for ever.

use dyno_txn_api::{Code, Error, Timestamp};

use super::batch::Batch;
use super::one_shot::OneShot;
use super::participant::Preparing;
use super::{Partition, Timer};
use crate::message::{Address, Fate, Head, Message};
use crate::store::Slot;

/// Pushes without a decision after which the work gives up.
const PUSHES_MAX: u8 = 4;

/// The kinds of work that an intent can block.
#[derive(Debug)]
pub(super) enum BlockedWork {
    Batch(Batch),
    OneShot(Box<OneShot>),
    Prepare(Preparing),
}

#[derive(Debug)]
pub(super) struct Waiting {
    work: BlockedWork,
    timestamp: Timestamp,
    priority: u16,
    until: u64,
    /// The transaction whose intent it is.
    owner: Head,
    pushes: u8,
}

impl BlockedWork {
    fn head(&self) -> (Timestamp, u16, u64) {
        match self {
            BlockedWork::Batch(batch) => (batch.head.timestamp, batch.head.priority, batch.until),
            BlockedWork::OneShot(one_shot) => {
                (one_shot.timestamp, one_shot.priority, one_shot.until)
            }
            BlockedWork::Prepare(work) => (work.head.timestamp, work.head.priority, work.until),
        }
    }
}

impl Partition {
    /// Sets work aside until the intent at a row is gone.
    pub(super) fn wait(&mut self, work: BlockedWork, slot: Slot) {
        let Some(intent) = self.store.intent(slot) else {
            // The intent is gone already. The work does not run here, inside of what it came from,
            // but as soon as this message is handled.
            let (timestamp, priority, until) = work.head();
            let owner = Head {
                timestamp: 0,
                holder: 0,
                priority,
            };
            let id = self.keep_waiting(Waiting {
                work,
                timestamp,
                priority,
                until,
                owner,
                pushes: 0,
            });
            self.ready.insert((timestamp, id));
            return;
        };
        let owner = intent.owner;
        let (timestamp, priority, until) = work.head();
        if self.waiting.len() >= self.config.waiting_max {
            let text = format!("{} operations wait already", self.waiting.len());
            return self.fail(work, Error::new(Code::Overloaded, text));
        }
        self.counters.waits += 1;
        let id = self.keep_waiting(Waiting {
            work,
            timestamp,
            priority,
            until,
            owner,
            pushes: 0,
        });
        self.store.wait_on(slot, id);
        if timestamp < owner.timestamp {
            // The older one pushes at once: the younger owner may be waiting for an intent of the
            // older one, which would not end otherwise.
            self.work_is_late(id);
        } else {
            let at = self.now.saturating_add(self.config.wait_ns).min(until);
            self.at(at, Timer::Work(id));
        }
    }

    fn keep_waiting(&mut self, waiting: Waiting) -> u64 {
        self.next_work += 1;
        self.waiting.insert(self.next_work, waiting);
        self.next_work
    }

    /// Readies work whose intent is gone. The oldest transaction goes first, because a younger one
    /// that read or wrote the row before it would make it fail.
    pub(super) fn wake(&mut self, waiters: Vec<u64>) {
        for id in waiters {
            if let Some(waiting) = self.waiting.get(&id) {
                self.ready.insert((waiting.timestamp, id));
            }
        }
    }

    pub(super) fn resume(&mut self, id: u64) {
        let Some(waiting) = self.waiting.remove(&id) else {
            return;
        };
        if waiting.until <= self.now {
            return self.fail(waiting.work, late());
        }
        match waiting.work {
            BlockedWork::Batch(batch) => {
                // Running it may set the mark again. If it does not, the next batch of its
                // transaction may run.
                let timestamp = batch.head.timestamp;
                self.waiting_batches.remove(&timestamp);
                self.run_batch(batch);
                if !self.waiting_batches.contains(&timestamp) {
                    self.queues_free.push_back(timestamp);
                }
            }
            BlockedWork::OneShot(one_shot) => self.run_one_shot(*one_shot),
            BlockedWork::Prepare(preparing) => self.run_prepare(preparing),
        }
    }

    /// Pushes the owner of the intent once work has waited long enough, or gives the work up.
    pub(super) fn work_is_late(&mut self, id: u64) {
        let Some(waiting) = self.waiting.get_mut(&id) else {
            return;
        };
        if waiting.until <= self.now {
            return self.give_up(id, late());
        }
        if waiting.pushes == PUSHES_MAX {
            let text = "the record holder of a transaction in the way does not answer";
            return self.give_up(id, Error::new(Code::Conflict, text));
        }
        waiting.pushes += 1;
        self.counters.pushes += 1;
        let push = Message::Push {
            timestamp: waiting.owner.timestamp,
            by: waiting.timestamp,
            priority: waiting.priority,
            force: true,
        };
        let to = Address::Partition(waiting.owner.holder);
        let at = self
            .now
            .saturating_add(self.config.resend_ns)
            .min(waiting.until);
        self.send(to, push);
        self.at(at, Timer::Work(id));
    }

    /// Handles the answer to a push: the fate of the pushed transaction `timestamp`, or that it is
    /// still open. Open means that it has precedence, so the work that pushed gives up.
    pub(super) fn pushed(&mut self, timestamp: Timestamp, by: Timestamp, fate: Fate) {
        if fate != Fate::Open {
            return self.learned(timestamp, fate);
        }
        let lost = self.waiting.iter().filter(|(_, waiting)| {
            waiting.owner.timestamp == timestamp && waiting.timestamp == by && waiting.pushes > 0
        });
        // A hash map has an order of its own in each process. The simulation repeats a run from its
        // seed, so the order must not depend on it.
        let mut lost: Vec<u64> = lost.map(|(&id, _)| id).collect();
        lost.sort_unstable();
        for id in lost {
            self.counters.conflicts += 1;
            let text = format!("transaction {timestamp} is in the way and has precedence");
            self.give_up(id, Error::new(Code::Conflict, text));
        }
    }

    fn give_up(&mut self, id: u64, error: Error) {
        if let Some(waiting) = self.waiting.remove(&id) {
            self.ready.remove(&(waiting.timestamp, id));
            self.fail(waiting.work, error);
        }
    }

    fn fail(&mut self, work: BlockedWork, error: Error) {
        match work {
            BlockedWork::Batch(batch) => {
                let timestamp = batch.head.timestamp;
                // Without these writes the transaction must not commit, and the client may already
                // have asked for it.
                if batch.loses_writes()
                    && let Some(txn) = self.participants.get_mut(&timestamp)
                {
                    txn.failed.get_or_insert_with(|| error.clone());
                    self.vote_when_complete(timestamp);
                }
                self.leave_queue(timestamp);
                self.fail_batch(batch, error);
            }
            BlockedWork::OneShot(one_shot) => self.one_shot_failed(*one_shot, error),
            BlockedWork::Prepare(preparing) => {
                let timestamp = preparing.head.timestamp;
                if let Some(txn) = self.participants.get_mut(&timestamp) {
                    txn.failed.get_or_insert(error);
                    self.vote_when_complete(timestamp);
                }
            }
        }
    }
}

fn late() -> Error {
    Error::new(
        Code::Deadline,
        "its deadline passed while it waited for another transaction",
    )
}
