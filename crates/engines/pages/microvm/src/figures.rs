//! Counts of what was served.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of one machine, which its thread writes.
#[derive(Debug, Default)]
pub struct Counters {
    pub faults: AtomicU64,
    pub placed: AtomicU64,
    pub zeros: AtomicU64,
    pub prefetched: AtomicU64,
    pub removed: AtomicU64,
    pub poisoned: AtomicU64,
    pub deferred: AtomicU64,
}

impl Counters {
    pub fn read(&self) -> Figures {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        Figures {
            faults: of(&self.faults),
            placed: of(&self.placed),
            zeros: of(&self.zeros),
            prefetched: of(&self.prefetched),
            removed: of(&self.removed),
            poisoned: of(&self.poisoned),
            deferred: of(&self.deferred),
        }
    }
}

/// Figures of one moment, since the pager began to serve the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Faults that were read; several threads that touch one page are several faults.
    pub faults: u64,
    /// Pages put in place by a fault.
    pub placed: u64,
    /// Pages of zeros put in place, by a fault or ahead of it. They take no memory until they are
    /// written to.
    pub zeros: u64,
    /// Pages put in place ahead of a fault.
    pub prefetched: u64,
    /// Pages that the machine gave up, as its balloon has it do.
    pub removed: u64,
    /// Pages that are damaged in the store; a touch of them raises SIGBUS.
    pub poisoned: u64,
    /// How often an answer had to wait because the machine's memory was being changed.
    pub deferred: u64,
}

impl Figures {
    /// The sums of both, figure by figure.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            faults: self.faults + other.faults,
            placed: self.placed + other.placed,
            zeros: self.zeros + other.zeros,
            prefetched: self.prefetched + other.prefetched,
            removed: self.removed + other.removed,
            poisoned: self.poisoned + other.poisoned,
            deferred: self.deferred + other.deferred,
        }
    }
}

pub fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Relaxed);
}
