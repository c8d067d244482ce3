//! The log of a database that lives in memory alone.

use crate::position::Lsn;

/// Counts positions and keeps nothing: what is appended is called durable at once, and is gone with
/// the process.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog {
    end: Lsn,
}

impl MemoryLog {
    /// A log that ends at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts the record.
    pub fn append(&mut self, record: &[u8]) -> Lsn {
        self.end.0 += record.len() as u64 + 8;
        self.end
    }

    /// The end of the last record.
    pub fn end(&self) -> Lsn {
        self.end
    }
}
