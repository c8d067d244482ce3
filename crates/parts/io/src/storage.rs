//! What a store of several files stands on: a directory whose files are opened, read, and written
//! at given positions, real or simulated.

use std::io;
use std::path::Path;

use crate::block_file::{Access, BlockFile, Caching};
use crate::device::{Device, FileSystem};
use crate::error::IoError;
use crate::host::HostFiles;
use crate::queue::{Completion, Queue, Request};
use crate::ring::Ring;

/// When a write is on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncing {
    /// After the next [`Device::sync`].
    AtSync,
    /// When it ends: O_DSYNC, or in a [`Queue`] perhaps an fdatasync behind each write.
    EachWrite,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// What for.
    pub access: Access,
    /// Whether the page cache takes part.
    pub caching: Caching,
    /// When a write is on stable storage.
    pub syncing: Syncing,
}

/// A [`Device`] that can be read as well.
pub trait Blocks: Device {
    /// Fills `block` from `offset_bytes` on; less than its length only at the end of the file.
    ///
    /// # Errors
    /// [`IoError::Unaligned`] for a direct file, else the system's reason.
    fn read_at(&self, offset_bytes: u64, block: &mut [u8]) -> Result<usize, IoError>;

    /// Its length.
    ///
    /// # Errors
    /// When the system cannot tell.
    fn len_bytes(&self) -> Result<u64, IoError>;
}

/// A place for files: [`HostFiles`], or a simulated disk.
pub trait Storage: FileSystem {
    /// Makes a directory, with those above it, unless it is there.
    ///
    /// # Errors
    /// The system's reason.
    fn make_directory(&self, directory: &Path) -> Result<(), IoError>;

    /// Names of the files in a directory, in order. What is not a plain file, or has no name in
    /// UTF-8, is left out.
    ///
    /// # Errors
    /// The system's reason.
    fn list(&self, directory: &Path) -> Result<Vec<String>, IoError>;

    /// Opens a file.
    ///
    /// # Errors
    /// [`IoError::DirectRefused`] where the file system has no direct I/O, else the system's
    /// reason.
    fn open(&self, path: &Path, opening: Opening) -> Result<Box<dyn Blocks>, IoError>;

    /// A queue of at most `depth` writes to a file. Where the kernel keeps io_uring from us the
    /// writes are done one by one, by the thread that submits them.
    ///
    /// # Errors
    /// As [`Storage::open`].
    fn queue(&self, path: &Path, opening: Opening, depth: usize)
    -> Result<Box<dyn Queue>, IoError>;

    /// Bytes that can still be written below a directory.
    ///
    /// # Errors
    /// When the system cannot tell.
    fn room_bytes(&self, directory: &Path) -> Result<u64, IoError>;
}

impl Blocks for BlockFile {
    fn read_at(&self, offset_bytes: u64, block: &mut [u8]) -> Result<usize, IoError> {
        BlockFile::read_at(self, offset_bytes, block)
    }

    fn len_bytes(&self) -> Result<u64, IoError> {
        BlockFile::len_bytes(self)
    }
}

impl Storage for HostFiles {
    fn make_directory(&self, directory: &Path) -> Result<(), IoError> {
        std::fs::create_dir_all(directory).map_err(|e| IoError::system("create", directory, e))
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, IoError> {
        let fail = |e| IoError::system("list", directory, e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if entry.file_type().map_err(fail)?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn open(&self, path: &Path, opening: Opening) -> Result<Box<dyn Blocks>, IoError> {
        Ok(Box::new(BlockFile::open_with(path, opening)?))
    }

    fn queue(
        &self,
        path: &Path,
        opening: Opening,
        depth: usize,
    ) -> Result<Box<dyn Queue>, IoError> {
        match Ring::open(path, opening, depth) {
            Err(IoError::UringRefused { .. }) => {
                let file = BlockFile::open_with(path, opening)?;
                Ok(Box::new(InlineQueue::new(file)))
            }
            ring => Ok(Box::new(ring?)),
        }
    }

    fn room_bytes(&self, directory: &Path) -> Result<u64, IoError> {
        self.free_bytes(directory)
    }
}

/// A queue of one place that writes while it is submitted to.
#[derive(Debug)]
pub struct InlineQueue<D: Device> {
    device: D,
    ended: Option<Completion>,
}

impl<D: Device> InlineQueue<D> {
    /// A queue for `device`.
    pub fn new(device: D) -> Self {
        Self {
            device,
            ended: None,
        }
    }
}

impl<D: Device> Queue for InlineQueue<D> {
    fn device(&self) -> &dyn Device {
        &self.device
    }

    fn depth(&self) -> usize {
        1
    }

    fn in_flight(&self) -> usize {
        usize::from(self.ended.is_some())
    }

    fn submit(&mut self, request: Request) -> Result<(), IoError> {
        let (offset_bytes, rest) = request.rest();
        let outcome = match self.device.write_some_at(offset_bytes, rest) {
            Err(IoError::System { source, .. }) => Err(source),
            written => written.map_err(io::Error::other),
        };
        self.ended = Some(Completion { request, outcome });
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.ended.take()
    }

    fn wait(&mut self) -> Result<Option<Completion>, IoError> {
        Ok(self.ended.take())
    }
}
