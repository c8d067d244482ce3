//! A wrapper that counts calls and bytes.

use crate::error::IoError;
use crate::{Durability, Sink, Source};

/// What went through a [`Counting`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Successful calls of `write`.
    pub writes: u64,
    /// Bytes that those calls were given.
    pub written_bytes: u64,
    /// Successful calls of `read_at`.
    pub reads: u64,
    /// Bytes that those calls filled.
    pub read_bytes: u64,
    /// Successful calls of `finish` that asked for stable storage.
    pub syncs: u64,
}

/// Counts the calls to a sink or source; only calls that succeed count.
#[derive(Debug)]
pub struct Counting<T> {
    inner: T,
    counts: Counts,
}

impl<T> Counting<T> {
    /// Wraps a sink or source; the counts begin at zero.
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            counts: Counts::default(),
        }
    }

    /// The counts up to now.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Unwraps the sink or source.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

impl<T: Sink> Sink for Counting<T> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        self.inner.write(bytes)?;
        self.counts.writes += 1;
        self.counts.written_bytes += bytes.len() as u64;
        Ok(())
    }

    fn written_bytes(&self) -> u64 {
        self.inner.written_bytes()
    }

    fn finish(&mut self, durability: Durability) -> Result<u64, IoError> {
        let written = self.inner.finish(durability)?;
        self.counts.syncs += u64::from(durability == Durability::Stable);
        Ok(written)
    }
}

impl<T: Source> Source for Counting<T> {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, IoError> {
        let filled = self.inner.read_at(offset, into)?;
        self.counts.reads += 1;
        self.counts.read_bytes += filled as u64;
        Ok(filled)
    }

    fn len_bytes(&self) -> u64 {
        self.inner.len_bytes()
    }
}
