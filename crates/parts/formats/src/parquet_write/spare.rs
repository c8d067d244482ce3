//! Memory of row groups that have been written, for those to come.
//!
//! Fresh pages from the kernel for every row group cost a third of the time of encoding without a
//! codec.

use parking_lot::Mutex;

/// Sets of buffers, one for each column; at most as many as there were row groups under way at
/// once.
#[derive(Debug, Default)]
pub(super) struct Spare(Mutex<Vec<Vec<Vec<u8>>>>);

impl Spare {
    /// Takes a set, an empty one where there is none.
    pub fn take(&self, columns: usize) -> Vec<Vec<u8>> {
        let mut sets = self.0.lock();
        let mut set = sets.pop().unwrap_or_default();
        set.resize_with(columns, Vec::new);
        set
    }

    /// Puts a set back, whatever it holds.
    pub fn give(&self, mut set: Vec<Vec<u8>>) {
        set.iter_mut().for_each(Vec::clear);
        let mut sets = self.0.lock();
        sets.push(set);
    }
}
