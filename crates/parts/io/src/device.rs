//! What sinks are built on: an open file and the names around it, real or simulated.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::aligned::ALIGNMENT_BYTES;
use crate::error::IoError;
use crate::opening::Caching;

/// How often in a row a write may accept nothing before it counts as failed.
pub(crate) const MOST_STALLS: u32 = 8;

/// A file open for writing at given positions: [`crate::BlockFile`], or a simulated one with
/// faults.
pub trait Device: Send + fmt::Debug {
    /// The path of the file, for messages.
    fn path(&self) -> &Path;

    /// Whether the page cache takes part. A direct device accepts only aligned memory, positions
    /// and lengths.
    fn caching(&self) -> Caching;

    /// Writes the front of `block` at `offset_bytes` and returns how many bytes that was, as pwrite
    /// does: fewer than requested is not an error.
    ///
    /// # Errors
    /// [`IoError::Unaligned`] for a direct device, else the system's reason.
    fn write_some_at(&self, offset_bytes: u64, block: &[u8]) -> Result<usize, IoError>;

    /// Makes the file at least `len_bytes` long and reserves its room on the disk, so that writes
    /// below need no new metadata. Returns false if the file system cannot, or has no room: writing
    /// goes on without it, and reports by itself what is wrong.
    ///
    /// # Errors
    /// Any other error of the system.
    fn allocate(&self, len_bytes: u64) -> Result<bool, IoError>;

    /// Truncates or extends the file.
    ///
    /// # Errors
    /// The system's reason.
    fn set_len(&self, len_bytes: u64) -> Result<(), IoError>;

    /// Returns when content and length are on stable storage.
    ///
    /// # Errors
    /// The error of the system. What was written before may be lost, and a second call may wrongly
    /// succeed, so the file must be given up.
    fn sync(&self) -> Result<(), IoError>;
}

/// What to do about a file that already has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave the old file in place and fail.
    Refuse,
    /// Put the new file in its place, in one step.
    Replace,
}

/// The names of files: [`crate::HostFiles`], or a simulated disk.
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Makes sure that no other process writes the file at `path`, which it may create empty, for
    /// as long as the claim lives.
    ///
    /// # Errors
    /// [`IoError::Busy`] when another process does, or the error of the system.
    fn claim(&self, path: &Path) -> Result<Claim, IoError>;

    /// Whether a file, or anything else, has this name.
    ///
    /// # Errors
    /// When the system cannot tell.
    fn exists(&self, path: &Path) -> Result<bool, IoError>;

    /// Renames a file in one step.
    ///
    /// # Errors
    /// [`IoError::Exists`] when `to` exists and may not be replaced, or the error of the system;
    /// both names are then as they were.
    fn rename(&self, from: &Path, to: &Path, existing: Existing) -> Result<(), IoError>;

    /// Removes a file.
    ///
    /// # Errors
    /// The system's reason.
    fn remove(&self, path: &Path) -> Result<(), IoError>;

    /// Returns when the names in `directory` are on stable storage.
    ///
    /// # Errors
    /// The system's reason; what was renamed before is then of unknown durability.
    fn sync_directory(&self, directory: &Path) -> Result<(), IoError>;
}

/// The right to write a file. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub struct Claim {
    _file: Option<File>,
}

impl Claim {
    /// A claim that lasts as long as `locked` is open.
    pub(crate) fn by(locked: File) -> Self {
        Self {
            _file: Some(locked),
        }
    }

    /// A claim that always succeeds, for a file system that only one process sees.
    pub fn uncontested() -> Self {
        Self { _file: None }
    }
}

/// Writes all of `block`, and continues after short writes.
///
/// # Errors
/// Those of the device, and "no progress" if it accepts nothing several times in a row.
pub fn write_whole(device: &dyn Device, offset_bytes: u64, block: &[u8]) -> Result<(), IoError> {
    let mut written = 0;
    let mut stalls = 0;
    while written < block.len() {
        let taken = device.write_some_at(offset_bytes + written as u64, &block[written..])?;
        let reached = onward(device.caching(), written + taken);
        stalls = if reached > written { 0 } else { stalls + 1 };
        if stalls == MOST_STALLS {
            return Err(stalled(device.path(), offset_bytes + written as u64));
        }
        written = reached;
    }
    Ok(())
}

/// Where to continue after `reached` bytes of a block. A direct write has to continue at an aligned
/// position, so what lies between that and `reached` is written twice.
pub(crate) fn onward(caching: Caching, reached: usize) -> usize {
    match caching {
        Caching::Cached => reached,
        Caching::Direct => reached - reached % ALIGNMENT_BYTES,
    }
}

pub(crate) fn stalled(path: &Path, offset_bytes: u64) -> IoError {
    let reason = format!("no progress at byte {offset_bytes} in {MOST_STALLS} attempts");
    let source = io::Error::new(io::ErrorKind::WriteZero, reason);
    IoError::system("write to", path, source)
}
