//! Sinks and sources through the page cache, for ordinary files.

use std::path::Path;

use crate::block_file::BlockFile;
use crate::device::{Device, write_whole};
use crate::error::IoError;
use crate::opening::{Access, Caching};
use crate::{Durability, Sink, Source};

/// Appends to a file through a buffer of its own, so that small writes cost no system call each.
#[derive(Debug)]
pub struct FileSink {
    device: Box<dyn Device>,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    flushed_bytes: u64,
}

impl FileSink {
    /// Creates `path`, emptying an old file. Writes of `buffer_bytes` and more bypass the buffer.
    ///
    /// # Errors
    /// The system's reason.
    pub fn create(path: &Path, buffer_bytes: usize) -> Result<Self, IoError> {
        let file = BlockFile::open(path, Access::Create, Caching::Cached)?;
        Ok(Self::over(Box::new(file), buffer_bytes))
    }

    /// Writes to `device`, which must be empty and not direct.
    pub fn over(device: Box<dyn Device>, buffer_bytes: usize) -> Self {
        Self {
            device,
            buffer: Vec::with_capacity(buffer_bytes),
            buffer_bytes,
            flushed_bytes: 0,
        }
    }

    fn flush(&mut self) -> Result<(), IoError> {
        write_whole(&*self.device, self.flushed_bytes, &self.buffer)?;
        self.flushed_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Sink for FileSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        // The buffer goes out first, also before a long write that bypasses it, so that bytes stay
        // in order.
        if self.buffer.len() + bytes.len() > self.buffer_bytes {
            self.flush()?;
        }
        if bytes.len() >= self.buffer_bytes {
            write_whole(&*self.device, self.flushed_bytes, bytes)?;
            self.flushed_bytes += bytes.len() as u64;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn written_bytes(&self) -> u64 {
        self.flushed_bytes + self.buffer.len() as u64
    }

    fn finish(&mut self, durability: Durability) -> Result<u64, IoError> {
        self.flush()?;
        if durability == Durability::Stable {
            self.device.sync()?;
        }
        Ok(self.flushed_bytes)
    }
}

/// Reads an ordinary file at any position.
#[derive(Debug)]
pub struct FileSource {
    file: BlockFile,
    len_bytes: u64,
}

impl FileSource {
    /// Opens `path`. Its length is read now and not again.
    ///
    /// # Errors
    /// The system's reason.
    pub fn open(path: &Path) -> Result<Self, IoError> {
        let file = BlockFile::open(path, Access::Read, Caching::Cached)?;
        let len_bytes = file.len_bytes()?;
        Ok(Self { file, len_bytes })
    }
}

impl Source for FileSource {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, IoError> {
        self.file.read_at(offset, into)
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}
