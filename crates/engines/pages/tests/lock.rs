//! The lock of an entry under loom: every interleaving of two threads. (With three, two that
//! wait can yield to each other for ever, which loom does not know to be unfair.) Has `unsafe`: loom's cell, whose
//! accesses loom itself checks.

#[path = "../src/index"]
mod index {
    pub mod sync {
        pub use loom::sync::atomic::{AtomicU64, Ordering};

        pub fn wait(_entry: &AtomicU64, _bit: u64) {
            loom::thread::yield_now();
        }
    }

    pub mod lock;
}

use index::lock::{LOCKED, lock, unlock};
use index::sync::AtomicU64;
use loom::cell::UnsafeCell;
use loom::sync::Arc;

/// An entry and the slot it points at: loom fails when two touch the slot at once, or one sees what
/// another has not finished.
struct Page {
    entry: AtomicU64,
    slot: UnsafeCell<u64>,
}

/// Reads and changes the slot, and puts a new entry in place.
fn step(page: &Page) {
    let old = lock(&page.entry);
    let count = page.slot.with_mut(|slot| {
        // SAFETY: the lock is held; loom checks that it suffices.
        let slot = unsafe { &mut *slot };
        assert_eq!(*slot, old >> 1, "the slot is what the entry says");
        *slot += 1;
        *slot
    });
    unlock(&page.entry, count << 1);
}

#[test]
fn a_slot_has_one_owner_and_its_bytes_are_there_when_the_entry_says_so() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.max_branches = 20_000;
    model.check(|| {
        let page = Arc::new(Page {
            entry: AtomicU64::new(0),
            slot: UnsafeCell::new(0),
        });
        let other = {
            let page = Arc::clone(&page);
            loom::thread::spawn(move || {
                step(&page);
                step(&page);
            })
        };
        step(&page);
        other.join().expect("no panic");
        let end = lock(&page.entry);
        assert_eq!(end, 3 << 1);
        assert_eq!(end & LOCKED, 0);
    });
}
