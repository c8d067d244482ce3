//! Standard output, and other streams.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;

use crate::error::IoError;
use crate::{Durability, Output, Sink};

/// Writes to standard output in large pieces. It bypasses the standard library's own buffer, which
/// looks for line ends, but holds its lock for each piece, so that lines printed elsewhere do not
/// fall into one.
#[derive(Debug)]
pub struct StdoutSink {
    stream: File,
    name: String,
    shared: bool,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    flushed_bytes: u64,
}

impl StdoutSink {
    /// Standard output, through a buffer of `buffer_bytes`.
    ///
    /// # Errors
    /// If standard output is not open.
    pub fn new(buffer_bytes: usize) -> Result<Self, IoError> {
        let name = "standard output";
        let descriptor = io::stdout().as_fd().try_clone_to_owned();
        let descriptor = descriptor.map_err(|e| IoError::system("open", Path::new(name), e))?;
        let mut sink = Self::over(descriptor.into(), name, buffer_bytes);
        sink.shared = true;
        Ok(sink)
    }

    /// Any other stream, called `name` in errors.
    pub fn over(stream: File, name: &str, buffer_bytes: usize) -> Self {
        Self {
            stream,
            name: name.to_owned(),
            shared: false,
            buffer: Vec::with_capacity(buffer_bytes),
            buffer_bytes,
            flushed_bytes: 0,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        let _lock = self.shared.then(|| io::stdout().lock());
        let put = self.stream.write_all(bytes);
        put.map_err(|e| match e.kind() {
            ErrorKind::BrokenPipe => IoError::ClosedPipe {
                name: self.name.clone(),
            },
            _ => IoError::system("write to", Path::new(&self.name), e),
        })?;
        self.flushed_bytes += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IoError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let flushed = self.write(&buffer);
        // The buffer is emptied even if the write failed, because part of it may have gone out, and
        // a second attempt would repeat that part.
        buffer.clear();
        self.buffer = buffer;
        flushed
    }
}

impl Sink for StdoutSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        if self.buffer.len() + bytes.len() > self.buffer_bytes && !self.buffer.is_empty() {
            self.flush()?;
        }
        if bytes.len() >= self.buffer_bytes {
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn written_bytes(&self) -> u64 {
        self.flushed_bytes + self.buffer.len() as u64
    }

    /// A pipe or terminal cannot be synced, so for them `Stable` means handed over; a file is
    /// synced.
    fn finish(&mut self, durability: Durability) -> Result<u64, IoError> {
        self.flush()?;
        if durability == Durability::Stable {
            let fail = |e| IoError::system("sync", Path::new(&self.name), e);
            if self.stream.metadata().map_err(fail)?.is_file() {
                self.stream.sync_data().map_err(fail)?;
            }
        }
        Ok(self.flushed_bytes)
    }
}

impl Output for StdoutSink {
    fn publish(mut self: Box<Self>) -> Result<u64, IoError> {
        self.finish(Durability::Stable)
    }
}
