//! Memory that pages fill, in huge pages: a random read finds its address in fewer steps. The
//! kernel's own store has that from its direct map.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Store;
use crate::arena::classes::SPAN_BYTES;

/// A huge page may have so many bytes without use, which the system finds memory for all the same:
/// 3%.
const MOST_FREE_BYTES: usize = 64 * 1024;

/// Which huge pages were asked for, so that each is asked for once.
#[derive(Debug)]
pub struct Huge(Box<[AtomicBool]>);

impl Huge {
    /// None yet, of `count`.
    pub fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicBool::new(false)).collect())
    }

    /// Bytes of memory that this takes.
    pub fn overhead_bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

impl Store {
    /// Has the system put memory that pages fill into huge pages, where it can; some hundred
    /// microseconds each, so not while a write waits. Returns how many came about.
    pub fn gather(&self) -> u64 {
        (0..self.huge.0.len())
            .map(|huge| u64::from(self.gather_one(huge)))
            .sum()
    }

    fn gather_one(&self, huge: usize) -> bool {
        if self.huge.0[huge].load(Relaxed) {
            return false;
        }
        let free: usize = self
            .memory
            .spans_of_huge(huge)
            .map(|span| self.slots.free_bytes(span))
            .sum();
        if free > MOST_FREE_BYTES || self.huge.0[huge].swap(true, Relaxed) {
            return false;
        }
        self.memory.gather(huge)
    }

    /// Gives memory back; what held it is not a huge page any more.
    pub(super) fn give_back(&self, at: usize, len: usize) -> Result<(), crate::error::StoreError> {
        if let Some(huge) = self.memory.huge_of((at / SPAN_BYTES) as u32) {
            self.huge.0[huge].store(false, Relaxed);
        }
        self.memory.give_back(at, len)
    }
}
