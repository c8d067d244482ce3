//! The lock that each entry of the index carries in its lowest bit.
//!
//! Who holds it may read, replace and free what the entry points at; nobody else may. The bits above
//! stay valid while it is held: a process killed in between leaves the old entry with the bit set,
//! and who opens the memory again clears it. `tests/lock.rs` runs this file under loom.

use super::sync::{AtomicU64, Ordering, wait};

/// The bit.
pub const LOCKED: u64 = 1;

/// Takes the lock and returns the entry without the bit, unless somebody has it.
#[inline(always)]
pub fn try_lock(entry: &AtomicU64) -> Option<u64> {
    // An exchange that fails leaves the word alone; setting the bit again would not, to a reader of
    // the memory model, and to loom.
    let seen = entry.load(Ordering::Relaxed);
    if seen & LOCKED != 0 {
        return None;
    }
    let taken = seen | LOCKED;
    entry
        .compare_exchange(seen, taken, Ordering::Acquire, Ordering::Relaxed)
        .ok()
}

/// Takes the lock and returns the entry without the bit.
#[inline(always)]
pub fn lock(entry: &AtomicU64) -> u64 {
    loop {
        match try_lock(entry) {
            Some(seen) => return seen,
            // Somebody is at this very page.
            None => wait(entry, LOCKED),
        }
    }
}

/// Puts `value` in place and gives the lock back, in one step.
#[inline(always)]
pub fn unlock(entry: &AtomicU64, value: u64) {
    debug_assert!(value & LOCKED == 0);
    entry.store(value, Ordering::Release);
}
