//! Keeps the buffers of row groups that have been written for those that follow.
//!
//! Fresh pages from the kernel for every row group cost a third of the time of encoding without a
//! codec.

use parking_lot::Mutex;

/// Sets of buffers, each with one for every column. There are at most as many sets as row groups
/// were under way at once.
#[derive(Debug, Default)]
pub(super) struct Spare(Mutex<Vec<Vec<Vec<u8>>>>);

impl Spare {
    /// Pops a set of cleared buffers, or makes one.
    pub fn pop(&self, columns: usize) -> Vec<Vec<u8>> {
        let mut sets = self.0.lock();
        let mut set = sets.pop().unwrap_or_default();
        set.resize_with(columns, Vec::new);
        set
    }

    /// Pushes a set for a later row group. Its content is cleared.
    pub fn push(&self, mut set: Vec<Vec<u8>>) {
        set.iter_mut().for_each(Vec::clear);
        let mut sets = self.0.lock();
        sets.push(set);
    }
}
