//! What a store of several files stands on: a directory whose files are opened, read, and written
//! at given positions, real or simulated.

use std::path::Path;

use crate::device::{Device, FileSystem};
use crate::error::IoError;
use crate::opening::Opening;
use crate::queue::Queue;

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

/// A place for files: [`crate::HostFiles`], or a simulated disk.
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
