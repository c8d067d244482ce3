//! What a store of several files is built on: a directory whose files are opened, read, and written
//! at given positions, real or simulated.

use std::path::Path;

use crate::device::{Device, FileSystem};
use crate::error::IoError;
use crate::opening::Opening;
use crate::queue::Queue;

/// A [`Device`] that can also be read.
pub trait Blocks: Device {
    /// Fills `block` from `offset_bytes` on; less than its length only at the end of the file.
    ///
    /// # Errors
    /// [`IoError::Unaligned`] for a direct file, else the system's reason.
    fn read_at(&self, offset_bytes: u64, block: &mut [u8]) -> Result<usize, IoError>;

    /// The length of the file in bytes.
    ///
    /// # Errors
    /// When the system cannot tell.
    fn len_bytes(&self) -> Result<u64, IoError>;
}

/// Directories of files: [`crate::HostFiles`], or a simulated disk.
pub trait Storage: FileSystem {
    /// Makes a directory, with those above it, unless it exists.
    ///
    /// # Errors
    /// The system's reason.
    fn make_directory(&self, directory: &Path) -> Result<(), IoError>;

    /// Names of the files in a directory, sorted. What is not a plain file, or has a name that is
    /// not UTF-8, is left out.
    ///
    /// # Errors
    /// The system's reason.
    fn list(&self, directory: &Path) -> Result<Vec<String>, IoError>;

    /// Opens one file of the storage.
    ///
    /// # Errors
    /// [`IoError::DirectRefused`] where the file system has no direct I/O, else the system's
    /// reason.
    fn open(&self, path: &Path, opening: Opening) -> Result<Box<dyn Blocks>, IoError>;

    /// Opens a file with a queue of at most `depth` writes. Where the kernel denies io_uring to
    /// this process, the thread that submits a write does it at once.
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
