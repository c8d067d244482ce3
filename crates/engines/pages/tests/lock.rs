//! The lock of an entry under loom: every interleaving of three threads that take it or pass by,
//! and of one that looks whether it is lost. Has `unsafe`: loom's cell, whose accesses loom itself
//! checks.

#[path = "../src/index"]
mod index {
    pub mod sync {
        pub use loom::sync::atomic::{AtomicU64, Ordering};
    }

    pub mod lock;
}

use index::lock::{LOCKED, Mark, is_lost, try_lock, unlock};
use index::sync::AtomicU64;
use loom::cell::UnsafeCell;
use loom::sync::Arc;

/// An entry and the slot it points at: loom fails when two touch the slot at once, or one sees what
/// another has not finished.
struct Page {
    entry: AtomicU64,
    slot: UnsafeCell<u64>,
}

/// Its number.
const NUMBER: u64 = 7;

/// Reads and changes the slot, and puts a new entry in place; nothing when somebody else is at it.
/// (Waiting is left out: loom cannot bound a loop in which two wait for a third.)
fn step(page: &Page, mark: &Mark) -> u64 {
    let Some(old) = try_lock(&page.entry, NUMBER, mark) else {
        return 0;
    };
    let count = page.slot.with_mut(|slot| {
        // SAFETY: the lock is held; loom checks that it suffices.
        let slot = unsafe { &mut *slot };
        assert_eq!(*slot, old >> 1, "the slot is what the entry says");
        *slot += 1;
        *slot
    });
    unlock(&page.entry, count << 1, mark);
    1
}

#[test]
fn a_slot_has_one_owner_and_its_bytes_are_there_when_the_entry_says_so() {
    let mut model = loom::model::Builder::new();
    // All with up to three pre-emptions take a second, all of them half a minute.
    model.preemption_bound = Some(3);
    model.check(|| {
        let page = Arc::new(Page {
            entry: AtomicU64::new(0),
            slot: UnsafeCell::new(0),
        });
        let others = [0, 1].map(|_| {
            let page = Arc::clone(&page);
            loom::thread::spawn(move || step(&page, &Mark::new()))
        });
        let mark = Mark::new();
        let mut done = step(&page, &mark) + step(&page, &mark);
        for other in others {
            done += other.join().expect("no panic");
        }
        assert!(done > 0, "somebody gets it");
        let end = try_lock(&page.entry, NUMBER, &mark).expect("it is free");
        assert_eq!(end & LOCKED, 0);
        assert_eq!(end, done << 1, "no step is lost");
    });
}

#[test]
fn a_lock_that_a_thread_holds_is_never_taken_for_lost() {
    loom::model(|| {
        let page = Arc::new((AtomicU64::new(0), Mark::new(), Mark::new()));
        // Each of the two changes the entry, as otherwise one that gave it back and one that took
        // it would look the same, which the store answers by looking again and again.
        let others = [1, 2].map(|number| {
            let page = Arc::clone(&page);
            loom::thread::spawn(move || {
                let mark = if number == 1 { &page.1 } else { &page.2 };
                if let Some(old) = try_lock(&page.0, NUMBER, mark) {
                    unlock(&page.0, old + (number << 1), mark);
                }
            })
        });
        assert!(!is_lost(&page.0, NUMBER, [&page.1, &page.2]));
        for other in others {
            other.join().expect("no panic");
        }
        // The bit alone, without a holder.
        page.0.fetch_or(LOCKED, index::sync::Ordering::Relaxed);
        assert!(is_lost(&page.0, NUMBER, [&page.1, &page.2]));
        assert!(!is_lost(&AtomicU64::new(0), NUMBER, [&page.1]));
    });
}
