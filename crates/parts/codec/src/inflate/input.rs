//! A buffered reader that shows the decoder many bytes at once.

use std::io::Read;

use super::{InflateError, InflateErrorKind};

const CAPACITY: usize = 256 * 1024;

/// Compressed bytes on their way from a reader into the bit buffer.
pub(super) struct Input<R> {
    reader: R,
    buffer: Box<[u8]>,
    pub(super) at: usize,
    end: usize,
    /// Offset in the stream of the first byte of `buffer`.
    base: u64,
    exhausted: bool,
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        let buffer = vec![0; CAPACITY].into_boxed_slice();
        Input {
            reader,
            buffer,
            at: 0,
            end: 0,
            base: 0,
            exhausted: false,
        }
    }

    /// The bytes that were read and not consumed.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// All bytes in the buffer, consumed or not; `at` is an index into them.
    pub(super) fn read_part(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    pub(super) fn consume(&mut self, n: usize) {
        debug_assert!(self.at + n <= self.end);
        self.at += n;
    }

    /// Offset in the stream of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(super) fn error(&self, kind: InflateErrorKind) -> InflateError {
        InflateError {
            offset: self.offset(),
            kind,
        }
    }

    /// Reads until at least `n` bytes are available or the reader ends. Returns how many are
    /// available.
    pub(super) fn want(&mut self, n: usize) -> Result<usize, InflateError> {
        debug_assert!(n <= CAPACITY / 2);
        while self.end - self.at < n && !self.exhausted {
            // Bytes are moved to the front only once half of the buffer is consumed, so each is
            // moved at most once.
            if self.at > CAPACITY / 2 {
                self.buffer.copy_within(self.at..self.end, 0);
                self.base += self.at as u64;
                self.end -= self.at;
                self.at = 0;
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.exhausted = true,
                Ok(read) => self.end += read,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.error(e.into())),
            }
        }
        Ok(self.end - self.at)
    }

    /// Reads one byte, or fails with the truncation of `what`.
    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8, InflateError> {
        if self.want(1)? == 0 {
            return Err(self.error(InflateErrorKind::Truncated(what)));
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        Ok(byte)
    }

    /// Reads and drops the rest. Returns how many bytes there were.
    pub(super) fn discard(&mut self) -> Result<u64, InflateError> {
        let mut discarded = 0;
        loop {
            let n = self.want(1)?;
            if n == 0 {
                return Ok(discarded);
            }
            discarded += n as u64;
            self.at += n;
        }
    }
}
