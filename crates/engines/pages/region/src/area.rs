//! Address space for a region. Has `unsafe`: mapping it, and taking pages out of it.

use std::io;
use std::ptr::NonNull;

use dyno_pages::{PAGE_BYTES, Page};

use crate::RegionError;

/// Private memory without any page in it.
#[derive(Debug)]
pub struct Area {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: addresses alone; who reads and writes behind them answers for it.
unsafe impl Send for Area {}
// SAFETY: see above.
unsafe impl Sync for Area {}

impl Area {
    /// So many bytes, in whole pages.
    pub fn new(bytes: usize) -> Result<Self, RegionError> {
        let what = "reserve address space";
        // SAFETY: a new mapping wherever the system likes.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let area = match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Self { start, bytes },
            _ => return Err(RegionError::system(what)(io::Error::last_os_error())),
        };
        // Huge pages would come in without a fault for each page; a child would see zeros where
        // pages are missing, so it gets none of it.
        for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTFORK] {
            // SAFETY: our own mapping, in which nothing is yet.
            let done = unsafe { libc::madvise(start, bytes, advice) };
            let error = io::Error::last_os_error();
            // A kernel without huge pages does not know how to do without them.
            if done != 0 && error.raw_os_error() != Some(libc::EINVAL) {
                return Err(RegionError::system(what)(error));
            }
        }
        Ok(area)
    }

    /// Its first byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of a page of it.
    pub fn page(&self, number: u64) -> *mut u8 {
        let at = number as usize * PAGE_BYTES;
        assert!(at < self.bytes, "page {number} lies in the area");
        // SAFETY: within the mapping.
        unsafe { self.start.add(at).as_ptr() }
    }

    /// What page `number` holds, which is in memory, and which no other thread writes to: it is
    /// protected, so that a thread that tries waits, or it was moved where no other thread knows
    /// it.
    pub fn copy_out(&self, number: u64, into: &mut Page) {
        // SAFETY: a page of the mapping; the system holds off those who write. Other threads may
        // have references to it, which see what they saw.
        unsafe { std::ptr::copy_nonoverlapping(self.page(number), into.as_mut_ptr(), PAGE_BYTES) }
    }

    /// Takes page `number` out of memory.
    pub fn drop_page(&self, number: u64) -> io::Result<()> {
        // SAFETY: a page of the mapping, whose content is stored; the next touch is a fault that
        // brings it back.
        match unsafe { libc::madvise(self.page(number).cast(), PAGE_BYTES, libc::MADV_DONTNEED) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; references into it do not outlive the region that shares it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
