//! The log of a database that is kept in memory only.

use crate::position::Lsn;

/// Counts positions and keeps nothing. What is appended is reported as durable at once, and is lost
/// with the process.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog {
    end: Lsn,
}

impl MemoryLog {
    /// A log that ends at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Advances the end by the record and its frame of eight bytes, and returns it.
    pub fn append(&mut self, record: &[u8]) -> Lsn {
        self.end.0 += record.len() as u64 + 8;
        self.end
    }

    /// The end of the last record.
    pub fn end(&self) -> Lsn {
        self.end
    }
}
