//! Maps a file into memory. Besides the unpackers for wide registers, only this module of the
//! reader is `unsafe`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use bytes::Bytes;

struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is only read, by any number of threads, and unmapped once, by the last owner.
unsafe impl Send for Mapping {}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `map` made `len` readable bytes at `start`, and they stay until the drop. The
        // files of a table are written once and only ever removed, never changed or cut.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are those of the mapping, and nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Maps a whole file for reading.
///
/// # Errors
/// Those of `fstat` and `mmap`.
pub(super) fn map(file: &File) -> io::Result<Bytes> {
    let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    // The system refuses to map nothing. An empty file is refused later, as one without a footer.
    if len == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: a new private mapping of an open file touches no memory of ours; the result is
    // checked before use.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at null"))?;
    Ok(Bytes::from_owner(Mapping { start, len }))
}
