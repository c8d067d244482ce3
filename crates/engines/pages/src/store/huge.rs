//! Puts full memory into huge pages, so that the address of a random read is found in fewer steps.
//! The kernel's own compressed memory has this from its direct map.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Store;
use crate::arena::classes::SPAN_BYTES;

/// The most unused bytes in a huge page, 3% of it: the system allocates all of it all the same.
const MOST_FREE_BYTES: usize = 64 * 1024;

/// Which huge pages were asked for, so that each is asked for once.
#[derive(Debug)]
pub struct Huge(Box<[AtomicBool]>);

impl Huge {
    pub fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicBool::new(false)).collect())
    }

    /// Bytes of memory that the flags take.
    pub fn overhead_bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

impl Store {
    /// Asks the system to put full memory into huge pages where it can. Each takes some hundred
    /// microseconds, so this is not done while a write waits. Returns how many were made.
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
        // The flag is set before the call and stays set if the call fails: a huge page that the
        // system could not make is not asked for in every pass.
        if free > MOST_FREE_BYTES || self.huge.0[huge].swap(true, Relaxed) {
            return false;
        }
        self.memory.gather(huge)
    }

    /// Gives memory back to the system, which splits the huge page that held it.
    pub(super) fn give_back(&self, at: usize, len: usize) -> Result<(), crate::error::StoreError> {
        if let Some(huge) = self.memory.huge_of((at / SPAN_BYTES) as u32) {
            self.huge.0[huge].store(false, Relaxed);
        }
        self.memory.give_back(at, len)
    }
}
