//! Past the page cache: whole blocks from one aligned buffer.

use std::path::Path;

use crate::aligned::{ALIGNMENT_BYTES, AlignedBuffer};
use crate::block_file::BlockFile;
use crate::device::{Device, write_whole};
use crate::error::IoError;
use crate::opening::{Access, Caching};
use crate::reserve::Reserve;
use crate::{Durability, Sink, Source};

/// Collects bytes into one block and writes it with O_DIRECT when it is full. Room is reserved
/// ahead of the writes. At the end the tail is padded to the alignment, and the file truncated to
/// its true length.
#[derive(Debug)]
pub struct DirectSink {
    device: Box<dyn Device>,
    block: AlignedBuffer,
    filled: usize,
    flushed_bytes: u64,
    reserve: Reserve,
}

impl DirectSink {
    /// Creates `path`, emptying an old file; `block_bytes` is rounded up to the alignment.
    ///
    /// # Errors
    /// [`IoError::DirectRefused`] where the file system has no direct I/O, else the system's
    /// reason.
    pub fn create(path: &Path, block_bytes: usize) -> Result<Self, IoError> {
        let file = BlockFile::open(path, Access::Create, Caching::Direct)?;
        Ok(Self::over(Box::new(file), block_bytes, None))
    }

    /// Writes to `device`, which must be empty. Room for `expected_bytes` is reserved at the first
    /// write; it is not an error if the file becomes longer or shorter.
    pub fn over(device: Box<dyn Device>, block_bytes: usize, expected_bytes: Option<u64>) -> Self {
        Self {
            device,
            block: AlignedBuffer::zeroed(block_bytes.max(1)),
            filled: 0,
            flushed_bytes: 0,
            reserve: Reserve::new(expected_bytes),
        }
    }

    /// Writes the front of the block up to `end`, a multiple of the alignment.
    fn flush(&mut self, end: usize) -> Result<(), IoError> {
        let device = &*self.device;
        self.reserve
            .reach(device, self.flushed_bytes + end as u64)?;
        write_whole(device, self.flushed_bytes, &self.block[..end])
    }
}

impl Sink for DirectSink {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), IoError> {
        while !bytes.is_empty() {
            let take = bytes.len().min(self.block.len() - self.filled);
            self.block[self.filled..self.filled + take].copy_from_slice(&bytes[..take]);
            self.filled += take;
            bytes = &bytes[take..];
            if self.filled == self.block.len() {
                self.flush(self.filled)?;
                self.flushed_bytes += self.filled as u64;
                self.filled = 0;
            }
        }
        Ok(())
    }

    fn written_bytes(&self) -> u64 {
        self.flushed_bytes + self.filled as u64
    }

    fn finish(&mut self, durability: Durability) -> Result<u64, IoError> {
        let written_bytes = self.written_bytes();
        if self.filled > 0 {
            // The tail stays in the buffer, because a later write continues in the same block.
            let padded = self.filled.next_multiple_of(ALIGNMENT_BYTES);
            self.block[self.filled..padded].fill(0);
            self.flush(padded)?;
        }
        // The file is longer than its content by the padding and by the reserved room.
        self.device.set_len(written_bytes)?;
        self.reserve.cut(written_bytes);
        if durability == Durability::Stable {
            self.device.sync()?;
        }
        Ok(written_bytes)
    }
}

/// Reads whole blocks with O_DIRECT and copies out what was requested. One block is kept, so that
/// short reads in order do not read it again.
#[derive(Debug)]
pub struct DirectSource {
    file: BlockFile,
    len_bytes: u64,
    block: AlignedBuffer,
    /// Position and valid length of what is in `block`.
    held: Option<(u64, usize)>,
}

impl DirectSource {
    /// Opens `path`; `block_bytes` is rounded up to the alignment.
    ///
    /// # Errors
    /// [`IoError::DirectRefused`] where the file system has no direct I/O, else the system's
    /// reason.
    pub fn open(path: &Path, block_bytes: usize) -> Result<Self, IoError> {
        let file = BlockFile::open(path, Access::Read, Caching::Direct)?;
        let len_bytes = file.len_bytes()?;
        Ok(Self {
            file,
            len_bytes,
            block: AlignedBuffer::zeroed(block_bytes.max(1)),
            held: None,
        })
    }

    /// Reads the block that holds `offset`, unless it is the current one, and returns its position
    /// and valid length.
    fn hold(&mut self, offset: u64) -> Result<(u64, usize), IoError> {
        let start = offset - offset % self.block.len() as u64;
        if let Some(held) = self.held.filter(|held| held.0 == start) {
            return Ok(held);
        }
        // Forgotten first: a read that fails may have changed part of the buffer.
        self.held = None;
        let held = (start, self.file.read_at(start, &mut self.block)?);
        self.held = Some(held);
        Ok(held)
    }
}

impl Source for DirectSource {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, IoError> {
        let mut filled = 0;
        while filled < into.len() && offset + (filled as u64) < self.len_bytes {
            let at = offset + filled as u64;
            let (start, valid) = self.hold(at)?;
            let skip = (at - start) as usize;
            if skip >= valid {
                break;
            }
            let take = (valid - skip).min(into.len() - filled);
            into[filled..filled + take].copy_from_slice(&self.block[skip..skip + take]);
            filled += take;
        }
        Ok(filled)
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}
