//! The lock of a page's entry, with a bound on every wait for it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::Store;
use crate::error::{Damage, StoreError};
use crate::index::lock::{self, LOCKED, Mark, is_lost};

/// A waiting thread spins, then yields, then looks whether there is a holder at all. A holder
/// decodes or copies one page, which takes a few microseconds.
const SPINS: u32 = 100;
const YIELDS: u32 = 1_000;
/// So many looks in a row, with a pause before each, must find no holder before the lock counts as
/// lost.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(1);

/// The marks of all threads that lock entries of a store.
#[derive(Debug, Default)]
pub struct Holders(Mutex<Vec<Weak<Mark>>>);

impl Holders {
    /// Registers a mark for one thread, and forgets those of threads that are gone.
    pub fn mark(&self) -> Arc<Mark> {
        let mark = Arc::new(Mark::new());
        let mut all = self.all();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&mark));
        mark
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<Mark>>> {
        // The list is consistent between any two calls on it, so a panic elsewhere does no harm.
        self.0.lock()
    }
}

impl Store {
    /// Locks `page`, which is in range, and returns its entry.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the bit of the lock is set and no thread holds it.
    #[inline(always)]
    pub(super) fn lock(&self, page: u64, mark: &Mark) -> Result<u64, StoreError> {
        match self.try_lock(page, mark) {
            Some(word) => Ok(word),
            None => self.wait_for_lock(page, mark),
        }
    }

    /// Locks `page` unless another thread holds it. Background work skips such pages, because they
    /// are in use.
    #[inline(always)]
    pub(super) fn try_lock(&self, page: u64, mark: &Mark) -> Option<u64> {
        lock::try_lock(self.memory.entry(page), page, mark)
    }

    /// Puts `word` in place and gives the lock of `page` back.
    #[inline(always)]
    pub(super) fn unlock(&self, page: u64, word: u64, mark: &Mark) {
        lock::unlock(self.memory.entry(page), word, mark);
    }

    /// Waits for the lock as long as a thread holds it, however long a slow disk takes, but only
    /// about 50 milliseconds if no thread does.
    #[cold]
    fn wait_for_lock(&self, page: u64, mark: &Mark) -> Result<u64, StoreError> {
        let entry = self.memory.entry(page);
        let (mut turns, mut looks) = (0, 0);
        loop {
            // Plain reads leave the cache line with the holder; an exchange would take it away each
            // time.
            if entry.load(Relaxed) & LOCKED == 0
                && let Some(word) = self.try_lock(page, mark)
            {
                return Ok(word);
            }
            turns += 1;
            match turns {
                ..SPINS => std::hint::spin_loop(),
                SPINS..YIELDS => std::thread::yield_now(),
                _ => {
                    std::thread::sleep(PAUSE);
                    looks = if self.lock_is_lost(page) {
                        looks + 1
                    } else {
                        0
                    };
                }
            }
            if looks == LOOKS {
                let what = Damage::Lock;
                return Err(StoreError::Corrupt { page, what });
            }
        }
    }

    fn lock_is_lost(&self, page: u64) -> bool {
        // A thread that begins to lock after this list was taken is seen by the next look.
        let marks: Vec<Arc<Mark>> = self
            .holders
            .all()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        is_lost(
            self.memory.entry(page),
            page,
            marks.iter().map(|mark| &**mark),
        )
    }
}
