//! What a log has to offer to be watched.

use std::time::Duration;

use crate::SourceError;

/// How far a partition reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Its number.
    pub partition: i32,
    /// The first offset that is still there.
    pub first: u64,
    /// The offset that the next record gets.
    pub next: u64,
}

/// A log, by offsets. After a failure it connects again at the next call.
pub trait Source {
    /// How far each partition reaches.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn ends(&mut self) -> Result<Vec<Ends>, SourceError>;

    /// Hands on records from these places (partition, offset): partition, offset, value, in the
    /// order of offsets within a partition, without gaps, none from before the place. About so many
    /// bytes; waits so long for the first.
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
