//! The lock that each entry of the index carries in its lowest bit.
//!
//! The thread that holds it may read, replace and free what the entry points at; no other thread
//! may. The bits above stay valid while it is held: a process killed in between leaves the old
//! entry with the bit set, and the next one that opens the memory clears it.
//!
//! The bit alone does not prove that a thread holds the lock: one bit that flips in memory looks
//! the same. So every thread has a [`Mark`] that names the page whose lock it holds, and a thread
//! that waits for long looks at all of them ([`is_lost`]). `tests/lock.rs` runs this file under
//! loom.

use super::sync::{AtomicU64, Ordering};

/// The bit of an entry that is set while a thread holds its lock.
pub const LOCKED: u64 = 1;

/// Names the page whose lock a thread holds. It has a cache line of its own, because its thread
/// writes it twice for each page and others almost never read it.
#[derive(Debug)]
#[repr(align(64))]
pub struct Mark(AtomicU64);

/// The mark of a thread that holds no lock: no page has this number.
const NONE: u64 = u64::MAX;

impl Mark {
    pub fn new() -> Self {
        Self(AtomicU64::new(NONE))
    }
}

/// Takes the lock of `page`, whose entry this is, and returns the entry without the bit; `None` if
/// another thread holds it.
#[inline(always)]
pub fn try_lock(entry: &AtomicU64, page: u64, mark: &Mark) -> Option<u64> {
    // An exchange that fails does not write. Setting a bit that is set already would be a write in
    // the memory model, and in loom, although the value stays the same.
    let seen = entry.load(Ordering::Relaxed);
    if seen & LOCKED != 0 {
        return None;
    }
    // The mark is set before the bit, so that there is no moment at which the bit is set and no
    // mark names the page. The exchange releases it: a thread that sees the bit sees the mark.
    mark.0.store(page, Ordering::Relaxed);
    let taken = seen | LOCKED;
    let done = entry.compare_exchange(seen, taken, Ordering::AcqRel, Ordering::Relaxed);
    if done.is_err() {
        // The mark is taken back, so that two threads that wait for a lost lock do not take each
        // other for its holder.
        mark.0.store(NONE, Ordering::Release);
    }
    done.ok()
}

/// Puts `value` in place and gives the lock back, in one store.
#[inline(always)]
pub fn unlock(entry: &AtomicU64, value: u64, mark: &Mark) {
    debug_assert!(value & LOCKED == 0);
    entry.store(value, Ordering::Release);
    // The mark is cleared last, because the lock is held until the store above.
    mark.0.store(NONE, Ordering::Release);
}

/// Whether the bit of `page` is set although no thread holds the lock. `marks` must have the mark
/// of each possible holder.
///
/// It can be wrong for a moment, if one thread gives the lock back and another takes it, with the
/// same bits in the entry, between the looks at the marks and at the entry. A thread that acts on
/// it asks many times first.
pub fn is_lost<'a>(
    entry: &AtomicU64,
    page: u64,
    marks: impl IntoIterator<Item = &'a Mark>,
) -> bool {
    let before = entry.load(Ordering::Acquire);
    if before & LOCKED == 0 {
        return false;
    }
    // A holder clears its mark after it has changed the entry. So a mark that is seen cleared means
    // that the change of the entry is seen below.
    let mut marks = marks.into_iter();
    if marks.any(|mark| mark.0.load(Ordering::Acquire) == page) {
        return false;
    }
    entry.load(Ordering::Acquire) == before
}
