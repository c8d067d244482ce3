//! A file in memory (memfd) and its one mapping. Has `unsafe`: the mapping itself, and slots as
//! slices, which the index and the bitmaps of slots keep from overlapping.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64};

use dyno_codec::dictionary::MOST_DICTIONARY_BYTES;

use super::classes::SPAN_BYTES;
use super::layout::{DICTIONARY_BYTES, HEADER_BYTES, Layout};
use crate::PAGE_BYTES;
use crate::error::StoreError;

/// Bytes of a huge page of this architecture.
const HUGE_BYTES: usize = 2 << 20;
const SPANS_OF_HUGE: usize = HUGE_BYTES / SPAN_BYTES;
/// Bytes of the word in front of the dictionary.
const DICTIONARY_HEAD_BYTES: usize = 8;
const _: () = assert!(DICTIONARY_HEAD_BYTES + MOST_DICTIONARY_BYTES <= DICTIONARY_BYTES);
/// Since Linux 6.1 (include/uapi/asm-generic/mman-common.h); the C library's bindings lack it.
const MADV_COLLAPSE: i32 = 25;

/// The memory of a store: header, index, classes of spans, and the arena.
#[derive(Debug)]
pub struct Memory {
    file: OwnedFd,
    /// Holds the lock that keeps every other store out of the memory.
    _claim: OwnedFd,
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the mapping is shared memory without an owner thread; index and classes are reached as
// atomics, and slots by functions whose callers keep them apart.
unsafe impl Send for Memory {}
// SAFETY: see above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates memory for `layout`: a header, and zeros, which are empty entries.
    ///
    /// # Errors
    /// If the system refuses the memory or its addresses.
    pub fn create(layout: Layout) -> Result<Self, StoreError> {
        // SAFETY: a name that ends in NUL; the descriptor returned belongs to us alone.
        let file = unsafe {
            let fd = libc::memfd_create(c"dyno-pages".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(StoreError::system("cannot make a file in memory"));
            }
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: no memory is passed.
        if unsafe { libc::ftruncate(file.as_raw_fd(), layout.total_bytes() as i64) } != 0 {
            return Err(StoreError::system("cannot size the file in memory"));
        }
        let claim = own(&file)?;
        let memory = Self::map(file, claim, layout)?;
        memory.write_header();
        Ok(memory)
    }

    /// Maps the memory of a store whose process is gone.
    ///
    /// # Errors
    /// [`StoreError::Format`] when it is not a store, [`StoreError::InUse`] while its process
    /// lives.
    pub fn adopt(file: OwnedFd) -> Result<Self, StoreError> {
        let claim = own(&file)?;
        let mut header = [0; HEADER_BYTES];
        // SAFETY: the buffer is good for its length.
        let read = unsafe {
            libc::pread(
                file.as_raw_fd(),
                header.as_mut_ptr().cast(),
                HEADER_BYTES,
                0,
            )
        };
        if read != HEADER_BYTES as isize {
            return Err(StoreError::Format(format!("{read} bytes of a header")));
        }
        let layout = Layout::from_header(&header)?;
        // SAFETY: all zeros is a value of the structure; the call fills it.
        let len = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            if libc::fstat(file.as_raw_fd(), &raw mut status) != 0 {
                return Err(StoreError::system("cannot look at the file in memory"));
            }
            status.st_size as u64
        };
        // A touch behind the end of a shorter file would kill this process with SIGBUS.
        if len != layout.total_bytes() as u64 {
            let want = layout.total_bytes();
            return Err(StoreError::Format(format!(
                "{len} bytes, the header says {want}"
            )));
        }
        Self::map(file, claim, layout)
    }

    fn map(file: OwnedFd, claim: OwnedFd, layout: Layout) -> Result<Self, StoreError> {
        let len = layout.total_bytes();
        // Address and offset must agree modulo a huge page for the system to use one. SAFETY: a
        // reservation wherever the system likes, of which the mapping takes the place, and whose
        // ends go back.
        let base = unsafe {
            let room = libc::mmap(
                std::ptr::null_mut(),
                len + HUGE_BYTES,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            );
            if room == libc::MAP_FAILED {
                return Err(StoreError::system("cannot reserve addresses"));
            }
            let skip = room.align_offset(HUGE_BYTES);
            let at = room.add(skip);
            if skip > 0 {
                libc::munmap(room, skip);
            }
            let end = len.next_multiple_of(PAGE_BYTES);
            libc::munmap(at.add(end), HUGE_BYTES - skip - (end - len));
            libc::mmap(
                at,
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Self {
                file,
                _claim: claim,
                base,
                layout,
            }),
            _ => Err(StoreError::system("cannot map the file in memory")),
        }
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The descriptor, for a supervisor to hold.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The entry of `page`, which is in range.
    #[inline(always)]
    pub fn entry(&self, page: u64) -> &AtomicU64 {
        debug_assert!(page < self.layout.pages);
        let at = self.layout.index_at() + page as usize * 8;
        // SAFETY: in range and aligned; reached as an atomic alone.
        unsafe { AtomicU64::from_ptr(self.base.add(at).as_ptr().cast()) }
    }

    /// The first run of pages from `from` on whose entries lie in memory that was ever touched.
    pub fn touched(&self, from: u64) -> Option<Range<u64>> {
        let pages = self.layout.pages;
        if from >= pages {
            return None;
        }
        let index_at = self.layout.index_at() as i64;
        let seek = |at: i64, whence| {
            // SAFETY: no memory is passed. The file's position, which this moves, is not used.
            unsafe { libc::lseek(self.file.as_raw_fd(), at, whence) }
        };
        let at = index_at + from as i64 * 8;
        let data = seek(at, libc::SEEK_DATA);
        if data < 0 {
            let error = std::io::Error::last_os_error();
            // ENXIO says that no data follow `at`. Any other error means that the system cannot
            // tell holes from data, and then every page counts as touched.
            return (error.raw_os_error() != Some(libc::ENXIO)).then_some(from..pages);
        }
        let page_of = |at: i64| (((at - index_at) as u64).div_ceil(8)).min(pages);
        let start = page_of(data.max(at));
        let end = match seek(data, libc::SEEK_HOLE) {
            hole if hole > data => page_of(hole),
            _ => pages,
        };
        (start < end).then_some(start..end)
    }

    /// Replaces the header of an older version by that of `layout`, whose sizes are the same.
    pub fn renew_header(&mut self, layout: Layout) {
        debug_assert_eq!(layout.total_bytes(), self.layout.total_bytes());
        self.layout = layout;
        self.write_header();
    }

    fn write_header(&self) {
        let header = self.layout.header();
        // SAFETY: the mapping is longer than a header, and nothing else uses the memory yet.
        unsafe {
            self.base
                .copy_from_nonoverlapping(NonNull::from(&header).cast(), HEADER_BYTES)
        };
    }

    /// The stored class of `span`, which is in range.
    pub fn class(&self, span: u32) -> &AtomicU8 {
        debug_assert!(span < self.layout.spans);
        let at = self.layout.classes_at() + span as usize;
        // SAFETY: in range; reached as an atomic alone.
        unsafe { AtomicU8::from_ptr(self.base.add(at).as_ptr()) }
    }

    /// Bytes of the arena.
    ///
    /// # Safety
    /// The caller guarantees that the bytes lie within one slot and that no thread writes to them
    /// while they are borrowed, as it holds the lock of the entry that points at the slot.
    #[inline(always)]
    pub unsafe fn bytes(&self, at: usize, len: usize) -> &[u8] {
        debug_assert!(at + len <= self.layout.spans as usize * SPAN_BYTES);
        // SAFETY: in range, and the caller guarantees the rest.
        unsafe {
            std::slice::from_raw_parts(self.base.add(self.layout.arena_at() + at).as_ptr(), len)
        }
    }

    /// Writes into the arena.
    ///
    /// # Safety
    /// The caller guarantees that the bytes lie within one slot that it has taken and that no entry
    /// points at yet.
    #[inline(always)]
    pub unsafe fn write(&self, at: usize, bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= self.layout.spans as usize * SPAN_BYTES);
        // SAFETY: in range, and the caller guarantees the rest.
        unsafe {
            let to = self.base.add(self.layout.arena_at() + at).as_ptr();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// The word in front of the dictionary; `None` if the memory has no room for one.
    pub fn dictionary_head(&self) -> Option<&AtomicU64> {
        let at = self.layout.arena_end();
        // SAFETY: the room lies behind the arena and is aligned; reached as an atomic alone.
        let head = || unsafe { AtomicU64::from_ptr(self.base.add(at).as_ptr().cast()) };
        self.layout.dictionary.then(head)
    }

    /// The first `len` bytes of the dictionary.
    ///
    /// # Safety
    /// The caller guarantees that the memory has room for a dictionary, and that its head is set,
    /// so that no thread writes it any more.
    pub unsafe fn dictionary(&self, len: usize) -> &[u8] {
        debug_assert!(self.layout.dictionary && len <= MOST_DICTIONARY_BYTES);
        let at = self.layout.arena_end() + DICTIONARY_HEAD_BYTES;
        // SAFETY: in range, and the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts(self.base.add(at).as_ptr(), len) }
    }

    /// Writes the bytes of the dictionary, without its head.
    ///
    /// # Safety
    /// The caller guarantees that the memory has room for a dictionary, that its head is not set,
    /// and that no other thread writes it.
    pub unsafe fn write_dictionary(&self, bytes: &[u8]) {
        debug_assert!(self.layout.dictionary && bytes.len() <= MOST_DICTIONARY_BYTES);
        let at = self.layout.arena_end() + DICTIONARY_HEAD_BYTES;
        // SAFETY: in range, and the caller guarantees the rest.
        unsafe {
            let to = self.base.add(at).as_ptr();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// Prefetches an entry into the processor's cache.
    #[inline(always)]
    pub fn prefetch_entry(&self, page: u64) {
        prefetch(std::ptr::from_ref(self.entry(page)).cast());
    }

    /// Prefetches the first `len` bytes at `at` of the arena. Addresses outside it, which a damaged
    /// entry may have, are ignored.
    #[inline(always)]
    pub fn prefetch(&self, at: usize, len: usize) {
        let inside = at + len <= self.layout.spans as usize * SPAN_BYTES;
        for line in (0..len).step_by(64).filter(|_| inside) {
            // SAFETY: the address is inside the mapping.
            prefetch(unsafe { self.base.add(self.layout.arena_at() + at + line).as_ptr() });
        }
    }

    /// Has the system allocate the memory of `len` bytes at `at` of the arena now, in whole pages.
    /// It is a hint: if it fails (before Linux 5.14, or without memory), each page is allocated
    /// when it is touched.
    pub fn populate(&self, at: usize, len: usize) {
        debug_assert!(at + len <= self.layout.spans as usize * SPAN_BYTES);
        // SAFETY: part of the mapping; no content changes.
        unsafe {
            let from = self.base.add(self.layout.arena_at() + at).as_ptr().cast();
            libc::madvise(from, len, libc::MADV_POPULATE_WRITE);
        }
    }

    /// How many whole huge pages lie within the arena.
    pub fn huge_pages(&self) -> usize {
        let from = self.layout.arena_at().next_multiple_of(HUGE_BYTES);
        self.layout.arena_end().saturating_sub(from) / HUGE_BYTES
    }

    /// The spans that huge page `huge` holds.
    pub fn spans_of_huge(&self, huge: usize) -> Range<u32> {
        let first = (self.spans_before_huge() + huge * SPANS_OF_HUGE) as u32;
        first..first + SPANS_OF_HUGE as u32
    }

    /// The huge page that `span` lies in; `None` at the ends of the arena, which no whole one
    /// covers.
    pub fn huge_of(&self, span: u32) -> Option<usize> {
        let at = (span as usize).checked_sub(self.spans_before_huge())?;
        let huge = at / SPANS_OF_HUGE;
        (huge < self.huge_pages()).then_some(huge)
    }

    fn spans_before_huge(&self) -> usize {
        let arena = self.layout.arena_at();
        (arena.next_multiple_of(HUGE_BYTES) - arena) / SPAN_BYTES
    }

    /// Asks the system to put huge page `huge` into one, whether all its parts were touched or not.
    /// Returns false if it cannot: before Linux 6.1, or without a free huge page.
    pub fn gather(&self, huge: usize) -> bool {
        let at = self.layout.arena_at().next_multiple_of(HUGE_BYTES) + huge * HUGE_BYTES;
        debug_assert!(at + HUGE_BYTES <= self.layout.arena_end());
        // SAFETY: part of the mapping; no content changes.
        unsafe { libc::madvise(self.base.add(at).as_ptr().cast(), HUGE_BYTES, MADV_COLLAPSE) == 0 }
    }

    /// Gives whole pages of the arena that hold nothing back to the system. They read as zeros
    /// then.
    ///
    /// # Errors
    /// The system's reason.
    pub fn give_back(&self, at: usize, len: usize) -> Result<(), StoreError> {
        let from = self.layout.arena_at() + at;
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: no memory is passed; nothing is read from a free slot before it was written.
        let done = unsafe { libc::fallocate(self.file.as_raw_fd(), mode, from as i64, len as i64) };
        if done == 0 {
            Ok(())
        } else {
            Err(StoreError::system("cannot give memory back"))
        }
    }

    /// Bytes that the system holds for the file: parts that were never touched, or given back, do
    /// not count.
    ///
    /// # Errors
    /// The system's reason.
    pub fn resident_bytes(&self) -> Result<u64, StoreError> {
        // SAFETY: all zeros is a value of the structure; the call fills it.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            if libc::fstat(self.file.as_raw_fd(), &raw mut status) != 0 {
                return Err(StoreError::system("cannot look at the file in memory"));
            }
            Ok(status.st_blocks as u64 * 512)
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`; references into it do not outlive `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.layout.total_bytes()) };
    }
}

#[inline(always)]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _no_hint_here = at;
}

/// Locks the whole file for as long as the returned descriptor is open. That is a descriptor of its
/// own, because the lock belongs to the open file description: a descriptor that was handed to
/// another process would share the lock, and a lock of the process would end when any descriptor is
/// closed.
fn own(file: &OwnedFd) -> Result<OwnedFd, StoreError> {
    let what = "cannot lock the file in memory";
    let claim = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .map_err(|source| StoreError::System { what, source })?;
    // SAFETY: all zeros is a value of the structure (from the first byte to the end, no process),
    // and the call only reads it.
    let done = unsafe {
        let mut whole: libc::flock = std::mem::zeroed();
        whole.l_type = libc::F_WRLCK as i16;
        libc::fcntl(claim.as_raw_fd(), libc::F_OFD_SETLK, &raw const whole)
    };
    if done == 0 {
        return Ok(claim.into());
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Err(StoreError::InUse),
        _ => Err(StoreError::System {
            what,
            source: error,
        }),
    }
}
