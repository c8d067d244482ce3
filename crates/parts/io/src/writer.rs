//! A sink as a [`std::io::Write`], for code that writes to one.

use std::io::{self, Write};

use crate::Sink;

/// Passes writes on to a sink. Errors keep the [`crate::IoError`] inside, with the system's kind,
/// and [`crate::IoError::below`] takes it out again. `flush` does nothing: a sink is flushed by
/// `finish`, once.
#[derive(Debug)]
pub struct SinkWriter<S>(S);

impl<S: Sink> SinkWriter<S> {
    /// A writer that passes everything to `sink`.
    pub fn new(sink: S) -> Self {
        Self(sink)
    }

    /// Returns the sink, so that it can be finished.
    pub fn into_inner(self) -> S {
        self.0
    }
}

impl<S: Sink> Write for SinkWriter<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.0.write(bytes);
        written.map_err(|error| io::Error::new(error.kind(), error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
