//! The interface of a log that can be watched.

use std::time::Duration;

use crate::SourceError;

/// The ends of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The partition's number, from 0.
    pub partition: i32,
    /// The first offset that still exists.
    pub first: u64,
    /// The offset that the next record gets.
    pub next: u64,
}

/// A log that is read by offsets. After a failure the next call connects again.
pub trait Source {
    /// The ends of each partition.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn ends(&mut self) -> Result<Vec<Ends>, SourceError>;

    /// Reads records from the given positions (partition, offset) and passes on partition, offset
    /// and value of each: in the order of offsets within a partition, without gaps, and none from
    /// before the position. Reads about this many bytes, and waits at most this long for the first
    /// record.
    ///
    /// # Errors
    /// See [`SourceError`]; what was handed on before it counts.
    fn fetch(
        &mut self,
        places: &[(i32, u64)],
        most_bytes: usize,
        wait: Duration,
        take: &mut dyn FnMut(i32, u64, &[u8]),
    ) -> Result<(), SourceError>;
}
