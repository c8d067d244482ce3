//! Sinks and sources that do nothing, so that only an engine's own cost remains.

use crate::error::IoError;
use crate::{Durability, Output, Sink, Source};

/// Counts bytes and drops them.
#[derive(Debug, Default)]
pub struct NullSink {
    written_bytes: u64,
}

impl Sink for NullSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        self.written_bytes += bytes.len() as u64;
        Ok(())
    }

    fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    fn finish(&mut self, _durability: Durability) -> Result<u64, IoError> {
        Ok(self.written_bytes)
    }
}

impl Output for NullSink {
    fn publish(self: Box<Self>) -> Result<u64, IoError> {
        Ok(self.written_bytes)
    }
}

/// A source of a given number of zero bytes.
#[derive(Debug)]
pub struct ZeroSource {
    len_bytes: u64,
}

impl ZeroSource {
    /// A source of `len_bytes` zeros.
    pub fn new(len_bytes: u64) -> Self {
        Self { len_bytes }
    }
}

impl Source for ZeroSource {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, IoError> {
        let left = self.len_bytes.saturating_sub(offset);
        let filled = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        into[..filled].fill(0);
        Ok(filled)
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}
