//! Address space for a region. Has `unsafe`: mapping it, and taking pages out of it.

use std::io;
use std::ptr::NonNull;

use dyno_pages::{PAGE_BYTES, Page};

use crate::RegionError;

/// Private memory that begins without any page in it.
#[derive(Debug)]
pub struct Area {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it holds addresses alone; code that reads and writes behind them answers for that itself.
unsafe impl Send for Area {}
// SAFETY: see above.
unsafe impl Sync for Area {}

impl Area {
    /// Reserves this many bytes, in whole pages.
    ///
    /// # Errors
    /// [`RegionError::System`].
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
        // A huge page would come in with one fault instead of one for each page. A child process
        // would see zeros where pages are missing, so it inherits none of the area.
        for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTFORK] {
            // SAFETY: our own mapping, in which nothing is yet.
            let done = unsafe { libc::madvise(start, bytes, advice) };
            let error = io::Error::last_os_error();
            // A kernel that was built without huge pages does not know the advice, and does not
            // need it.
            if done != 0 && error.raw_os_error() != Some(libc::EINVAL) {
                return Err(RegionError::system(what)(error));
            }
        }
        Ok(area)
    }

    /// The address of the first byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its length in bytes, as it was asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of page `number`.
    ///
    /// # Panics
    /// When the area has no such page.
    pub fn page(&self, number: u64) -> *mut u8 {
        let at = number as usize * PAGE_BYTES;
        assert!(at < self.bytes, "page {number} lies in the area");
        // SAFETY: within the mapping.
        unsafe { self.start.add(at).as_ptr() }
    }

    /// Copies page `number`, which is in memory and which no other thread writes to: either it is
    /// protected, so that a writer waits, or it was moved to where no other thread knows it.
    pub fn copy_out(&self, number: u64, into: &mut Page) {
        // SAFETY: a page of the mapping; the system holds off writers. Other threads may
        // have references to it, which see what they saw.
        unsafe { std::ptr::copy_nonoverlapping(self.page(number), into.as_mut_ptr(), PAGE_BYTES) }
    }

    /// Takes page `number` out of memory; what it holds is lost.
    ///
    /// # Errors
    /// The system's reason.
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
