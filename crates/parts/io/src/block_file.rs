//! A file that is read and written in whole blocks at given positions. Has `unsafe`: fallocate and
//! pwritev2, system calls that the standard library does not offer.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::aligned::ALIGNMENT_BYTES;
use crate::device::{Device, write_whole};
use crate::error::IoError;
use crate::opening::{Access, Caching, Opening, Syncing};
use crate::storage::Blocks;

/// A file that is read and written at given positions. A direct one accepts only aligned memory
/// (see [`crate::AlignedBuffer`]), positions and lengths.
#[derive(Debug)]
pub struct BlockFile {
    file: File,
    path: PathBuf,
    caching: Caching,
}

impl BlockFile {
    /// Opens `path`. Its writes are stable after the next [`BlockFile::sync`].
    ///
    /// # Errors
    /// [`IoError::DirectRefused`] where the file system has no direct I/O, else the system's
    /// reason.
    pub fn open(path: &Path, access: Access, caching: Caching) -> Result<Self, IoError> {
        let opening = Opening {
            access,
            caching,
            syncing: Syncing::AtSync,
        };
        Self::open_with(path, opening)
    }

    /// Opens `path`, with a choice of when its writes are stable.
    ///
    /// # Errors
    /// As [`BlockFile::open`].
    pub fn open_with(path: &Path, opening: Opening) -> Result<Self, IoError> {
        let Opening {
            access,
            caching,
            syncing,
        } = opening;
        let mut options = OpenOptions::new();
        options.read(true);
        match access {
            Access::Read => {}
            Access::Update => {
                options.write(true);
            }
            Access::Create => {
                options.write(true).create(true).truncate(true);
            }
        }
        let direct = match caching {
            Caching::Direct => libc::O_DIRECT,
            Caching::Cached => 0,
        };
        let stable = match syncing {
            Syncing::EachWrite => libc::O_DSYNC,
            Syncing::AtSync => 0,
        };
        options.custom_flags(direct | stable);
        let file = options.open(path).map_err(|error| {
            // EINVAL is how open says that the file system has no O_DIRECT; it is an error of its
            // own, so that callers can fall back to the page cache.
            if caching == Caching::Direct && error.raw_os_error() == Some(libc::EINVAL) {
                IoError::DirectRefused {
                    path: path.to_path_buf(),
                }
            } else {
                IoError::system("open", path, error)
            }
        })?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            caching,
        })
    }

    /// The path that it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether reads and writes go through the page cache.
    pub fn caching(&self) -> Caching {
        self.caching
    }

    /// The length of the file in bytes.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn len_bytes(&self) -> Result<u64, IoError> {
        let metadata = self.file.metadata();
        Ok(metadata
            .map_err(|e| IoError::system("look at", &self.path, e))?
            .len())
    }

    /// Writes all of `block` at `offset_bytes`.
    ///
    /// # Errors
    /// [`IoError::Unaligned`] for a direct file, else the system's reason.
    pub fn write_at(&self, offset_bytes: u64, block: &[u8]) -> Result<(), IoError> {
        write_whole(self, offset_bytes, block)
    }

    /// Fills `block` from `offset_bytes` on; less than its length only at the end of the file.
    ///
    /// # Errors
    /// [`IoError::Unaligned`] for a direct file, else the system's reason.
    pub fn read_at(&self, offset_bytes: u64, block: &mut [u8]) -> Result<usize, IoError> {
        self.check(offset_bytes, block.len())?;
        let mut filled = 0;
        while filled < block.len() {
            match self
                .file
                .read_at(&mut block[filled..], offset_bytes + filled as u64)
            {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(IoError::system("read", &self.path, e)),
            }
            // A direct read that stops within a block has met the end of the file, and a read from
            // there would be unaligned.
            if self.caching == Caching::Direct && filled % ALIGNMENT_BYTES != 0 {
                break;
            }
        }
        Ok(filled)
    }

    /// Truncates or extends the file.
    ///
    /// # Errors
    /// The system's reason.
    pub fn set_len(&self, len_bytes: u64) -> Result<(), IoError> {
        self.file
            .set_len(len_bytes)
            .map_err(|e| IoError::system("cut", &self.path, e))
    }

    /// Returns when the content is on stable storage (fdatasync).
    ///
    /// # Errors
    /// The system's reason; what was written before is then of unknown durability.
    pub fn sync(&self) -> Result<(), IoError> {
        self.file
            .sync_data()
            .map_err(|e| IoError::system("sync", &self.path, e))
    }

    /// Writes in this thread, which sleeps until the write has ended. Returns the bytes written.
    /// They are on stable storage if each write is to be: one call for both takes less time than a
    /// write and an fdatasync.
    ///
    /// # Errors
    /// The system's reason.
    pub(crate) fn write_here(
        &self,
        offset_bytes: u64,
        block: &[u8],
        syncing: Syncing,
    ) -> io::Result<usize> {
        let flags = match syncing {
            Syncing::EachWrite => libc::RWF_DSYNC,
            Syncing::AtSync => 0,
        };
        let part = libc::iovec {
            iov_base: block.as_ptr().cast_mut().cast(),
            iov_len: block.len(),
        };
        let offset = libc::off_t::try_from(offset_bytes).map_err(io::Error::other)?;
        loop {
            // SAFETY: the part is borrowed memory that the kernel only reads, until the call
            // returns.
            let written = unsafe { libc::pwritev2(self.descriptor(), &part, 1, offset, flags) };
            let Ok(bytes) = usize::try_from(written) else {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            };
            return Ok(bytes);
        }
    }

    /// The descriptor, for system calls on the file.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    fn check(&self, offset_bytes: u64, len_bytes: usize) -> Result<(), IoError> {
        let aligned = offset_bytes.is_multiple_of(ALIGNMENT_BYTES as u64)
            && len_bytes.is_multiple_of(ALIGNMENT_BYTES);
        if self.caching == Caching::Cached || aligned {
            return Ok(());
        }
        Err(IoError::Unaligned {
            path: self.path.clone(),
            offset_bytes,
            len_bytes,
            alignment_bytes: ALIGNMENT_BYTES,
        })
    }
}

impl Blocks for BlockFile {
    fn read_at(&self, offset_bytes: u64, block: &mut [u8]) -> Result<usize, IoError> {
        BlockFile::read_at(self, offset_bytes, block)
    }

    fn len_bytes(&self) -> Result<u64, IoError> {
        BlockFile::len_bytes(self)
    }
}

impl Device for BlockFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn caching(&self) -> Caching {
        self.caching
    }

    fn write_some_at(&self, offset_bytes: u64, block: &[u8]) -> Result<usize, IoError> {
        self.check(offset_bytes, block.len())?;
        loop {
            match self.file.write_at(block, offset_bytes) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                written => return written.map_err(|e| IoError::system("write to", &self.path, e)),
            }
        }
    }

    fn allocate(&self, len_bytes: u64) -> Result<bool, IoError> {
        let Ok(len) = libc::off_t::try_from(len_bytes) else {
            return Ok(false);
        };
        loop {
            // SAFETY: the descriptor is open as long as `self.file` is; no memory is passed.
            if unsafe { libc::fallocate(self.descriptor(), 0, 0, len) } == 0 {
                return Ok(true);
            }
            let error = io::Error::last_os_error();
            // Without reserved room the writes themselves work, or fail with a reason of their own,
            // so this is not an error yet.
            if cannot_reserve(&error) {
                return Ok(false);
            }
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(IoError::system("take room for", &self.path, error));
            }
        }
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), IoError> {
        BlockFile::set_len(self, len_bytes)
    }

    fn sync(&self) -> Result<(), IoError> {
        BlockFile::sync(self)
    }
}

/// Whether room cannot be reserved here: the file system does not offer it, or lacks the room, or
/// the user's quota does.
fn cannot_reserve(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::ENOSPC | libc::EDQUOT | libc::EFBIG)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_room_or_of_quota_is_no_error_of_reserving() {
        let reserves = |code| !cannot_reserve(&io::Error::from_raw_os_error(code));
        for code in [libc::ENOSPC, libc::EDQUOT, libc::EFBIG, libc::EOPNOTSUPP] {
            assert!(!reserves(code), "{code}");
        }
        assert!(reserves(libc::EIO) && reserves(libc::EINTR));
    }
}
