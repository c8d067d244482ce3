//! Memory that the driver reads and writes too. Has `unsafe`: mapping it, and slices of it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::UblkError;

#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it holds addresses alone, and one thread at a time uses what is behind them.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the driver's descriptors of a queue, at `offset` of its file, read-only.
    pub fn descriptors(file: &File, offset: i64, bytes: usize) -> Result<Self, UblkError> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::new(file.as_raw_fd(), offset, bytes, libc::PROT_READ, flags)
    }

    /// Allocates memory of our own, all of it now, so that no request waits for a page.
    pub fn buffers(bytes: usize) -> Result<Self, UblkError> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::new(-1, 0, bytes, libc::PROT_READ | libc::PROT_WRITE, flags)
    }

    fn new(
        file: i32,
        offset: i64,
        bytes: usize,
        access: i32,
        flags: i32,
    ) -> Result<Self, UblkError> {
        // SAFETY: a new mapping wherever the system likes.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { start, bytes }),
            _ => Err(UblkError::system("map a queue's memory")(
                io::Error::last_os_error(),
            )),
        }
    }

    /// The address of byte `at`, for the driver.
    pub fn address(&self, at: usize) -> u64 {
        assert!(at < self.bytes, "byte {at} lies in the mapping");
        self.start.as_ptr() as u64 + at as u64
    }

    /// Copies `N` bytes, which the driver may change at any later moment.
    pub fn copy<const N: usize>(&self, at: usize) -> [u8; N] {
        assert!(at + N <= self.bytes, "bytes {at}.. lie in the mapping");
        // SAFETY: within the mapping; volatile, as the driver has written it.
        unsafe { self.start.add(at).cast::<[u8; N]>().read_volatile() }
    }

    /// A part of our own memory as a slice.
    ///
    /// # Safety
    /// The caller guarantees that the mapping was made by [`Mapping::buffers`], and that the driver
    /// does not touch the bytes meanwhile, because their request is being served here.
    pub unsafe fn slice(&mut self, at: usize, bytes: usize) -> &mut [u8] {
        assert!(at + bytes <= self.bytes, "bytes {at}.. lie in the mapping");
        // SAFETY: within the mapping, and the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at).as_ptr(), bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; slices of it do not outlive `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
