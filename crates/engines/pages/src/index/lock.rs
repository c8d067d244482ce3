//! The lock that each entry of the index carries in its lowest bit.
//!
//! The thread that holds it may read, replace and free what the entry points at; no other thread
//! may. The bits above stay valid while it is held: a process killed in between leaves the old
//! entry with the bit set, and the next one that opens the memory clears it.
//!
//! The bit alone does not say that a thread holds it: one bit that changes in memory looks the
//! same. So every thread has a [`Mark`] that names the page whose lock it holds, and a thread that
//! waits for long looks at all of them ([`is_lost`]). `tests/lock.rs` runs this file under loom.

use super::sync::{AtomicU64, Ordering};

/// The bit.
pub const LOCKED: u64 = 1;

/// Names the page whose lock a thread holds. Alone in its cache line, as its thread writes it twice
/// for each page and others read it almost never.
#[derive(Debug)]
#[repr(align(64))]
pub struct Mark(AtomicU64);

/// No page has this number.
const NONE: u64 = u64::MAX;

impl Mark {
    /// Of a thread that holds no lock.
    pub fn new() -> Self {
        Self(AtomicU64::new(NONE))
    }
}

/// Takes the lock of `page`, whose entry this is, and returns the entry without the bit, unless
/// another thread has it.
#[inline(always)]
pub fn try_lock(entry: &AtomicU64, page: u64, mark: &Mark) -> Option<u64> {
    // An exchange that fails leaves the word alone; setting the bit again would not, to a reader of
    // the memory model, and to loom.
    let seen = entry.load(Ordering::Relaxed);
    if seen & LOCKED != 0 {
        return None;
    }
    // Before the bit is set, so that there is no moment at which it is set and no mark names the
    // page. Released by the exchange: a thread that sees the bit sees the mark.
    mark.0.store(page, Ordering::Relaxed);
    let taken = seen | LOCKED;
    let done = entry.compare_exchange(seen, taken, Ordering::AcqRel, Ordering::Relaxed);
    if done.is_err() {
        // Two threads that wait for a third must not take each other for the holder.
        mark.0.store(NONE, Ordering::Release);
    }
    done.ok()
}

/// Puts `value` in place and gives the lock back, in one step.
#[inline(always)]
pub fn unlock(entry: &AtomicU64, value: u64, mark: &Mark) {
    debug_assert!(value & LOCKED == 0);
    entry.store(value, Ordering::Release);
    // Only now: until then the lock is held.
    mark.0.store(NONE, Ordering::Release);
}

/// Whether the bit of `page` is set and no thread holds the lock. Each holder's mark is in `marks`.
///
/// It can be wrong for a moment, when one thread gives the lock back and another takes it, with the
/// same bits in the entry, between the looks at the marks and at the entry. A thread that acts on
/// it asks again and again first.
pub fn is_lost<'a>(
    entry: &AtomicU64,
    page: u64,
    marks: impl IntoIterator<Item = &'a Mark>,
) -> bool {
    let before = entry.load(Ordering::Acquire);
    if before & LOCKED == 0 {
        return false;
    }
    // A holder that gave the lock back has cleared its mark after it changed the entry, so that a
    // mark seen cleared means that the entry is seen changed below.
    let mut marks = marks.into_iter();
    if marks.any(|mark| mark.0.load(Ordering::Acquire) == page) {
        return false;
    }
    entry.load(Ordering::Acquire) == before
}
