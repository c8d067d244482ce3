//! A store of compressed pages as a disk: bytes at any offset, of any length.
//!
//! What it is: [`Disk`], which all fronts of one store share, and [`Head`], one thread's handle to
//! read, write and zero. Part of a page is read, changed and written under a lock of that page, so
//! that writers of neighbouring sectors lose nothing. What it is not: durable. A write that has
//! returned is in the store's memory, page by page; it is lost with the memory, that is with the
//! last process that holds it, or with the machine.
//!
//! ```
//! use std::sync::Arc;
//! use dyno_pages::{Settings, Store};
//! use dyno_pages_disk::Disk;
//!
//! let disk = Disk::new(Arc::new(Store::create(Settings::new(1000, 1 << 20))?));
//! let mut head = disk.head()?;
//! head.write(4090, b"across two pages")?;
//! let mut bytes = [0; 16];
//! head.read(4090, &mut bytes)?;
//! assert_eq!(&bytes, b"across two pages");
//! # Ok::<(), dyno_pages::StoreError>(())
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use dyno_pages::{Handle, PAGE_BYTES, Page, Store, StoreError};
use parking_lot::{Mutex, MutexGuard};

/// Locks of pages: page n has lock n modulo this number.
const LOCKS: usize = 256;
/// Pages read in one call, so that the store can prefetch their bytes.
const BATCH: usize = 32;
const PAGE: u64 = PAGE_BYTES as u64;

/// A store as a disk. All threads that write to one store by bytes must share one of these, because
/// it has the locks.
#[derive(Debug)]
pub struct Disk {
    store: Arc<Store>,
    locks: Box<[Mutex<()>]>,
    figures: Figures,
    /// Whether nothing is kept: for measurements of a front alone.
    null: bool,
}

/// Waits for all threads that serve a disk, and returns the first failure. A panic of one goes on
/// in the caller.
///
/// # Errors
/// Those of the threads.
pub fn join_all<E>(threads: Vec<JoinHandle<Result<(), E>>>) -> Result<(), E> {
    let mut first = Ok(());
    for thread in threads {
        let ended = match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        first = first.and(ended);
    }
    first
}

/// What all heads of a disk were asked for since it was made, failed requests included: a
/// measurement from outside compares its own counts with these.
#[derive(Debug, Default)]
pub struct Figures {
    /// Calls of [`Head::read`], failed ones too.
    pub reads: AtomicU64,
    /// Bytes that those calls asked for.
    pub read_bytes: AtomicU64,
    /// Calls of [`Head::write`], failed ones too.
    pub writes: AtomicU64,
    /// Bytes that those calls brought.
    pub written_bytes: AtomicU64,
}

/// What becomes of pages that are zeroed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zeros {
    /// They are discarded, and take no memory.
    Free,
    /// They are written, and count as pages that hold something.
    Keep,
}

impl Disk {
    /// Makes the one disk of `store`; a second one would have other locks.
    pub fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
            figures: Figures::default(),
            null: false,
        }
    }

    /// A disk as long as `store` that keeps nothing: a read leaves the reader's memory as it is.
    /// What it costs is what the way to a disk costs, for measurements of a front.
    pub fn null(store: Arc<Store>) -> Self {
        Self {
            null: true,
            ..Self::new(store)
        }
    }

    /// The store that the pages are in.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Counts of the calls and bytes since the disk was made.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// The length of the disk in bytes, a whole number of pages.
    pub fn bytes(&self) -> u64 {
        self.store.pages() * PAGE
    }

    /// Makes the handle by which one thread reads and writes.
    ///
    /// # Errors
    /// When there is no memory for its contexts.
    pub fn head(&self) -> Result<Head<'_>, StoreError> {
        Ok(Head {
            disk: self,
            handle: self.store.handle()?,
            page: Box::new([0; PAGE_BYTES]),
        })
    }

    /// Whether `len` bytes from `at` on lie on the disk.
    pub fn holds(&self, at: u64, len: u64) -> bool {
        at.checked_add(len).is_some_and(|end| end <= self.bytes())
    }

    fn within(&self, at: u64, len: u64) -> Result<(), StoreError> {
        if self.holds(at, len) {
            return Ok(());
        }
        let last = at.saturating_add(len.saturating_sub(1));
        Err(StoreError::OutOfRange {
            page: last / PAGE,
            pages: self.store.pages(),
        })
    }

    fn lock(&self, page: u64) -> MutexGuard<'_, ()> {
        // The lock guards no data of its own, so a panic under it leaves nothing half done.
        self.locks[(page % LOCKS as u64) as usize].lock()
    }
}

/// Reads and writes for one thread. It allocates nothing after it was made.
#[derive(Debug)]
pub struct Head<'a> {
    disk: &'a Disk,
    handle: Handle<'a>,
    page: Box<Page>,
}

impl Head<'_> {
    /// Reads the bytes from `at` on; what was never written, or was zeroed, reads as zeros.
    ///
    /// # Errors
    /// [`StoreError::OutOfRange`] before anything is read; [`StoreError::Corrupt`] for the first
    /// page that is not what was written, when `into` holds what came before it.
    pub fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.disk.figures.reads.fetch_add(1, Relaxed);
        let len = into.len() as u64;
        self.disk.figures.read_bytes.fetch_add(len, Relaxed);
        self.disk.within(at, len)?;
        if self.disk.null {
            return Ok(());
        }
        let (first, offset) = (at / PAGE, (at % PAGE) as usize);
        let cut = match offset {
            0 => 0,
            _ => into.len().min(PAGE_BYTES - offset),
        };
        // A request has up to three parts: the end of a first page, whole pages, and the start of a
        // last one. Only whole pages are decoded straight into the caller's memory.
        let (front, rest) = into.split_at_mut(cut);
        if !front.is_empty() {
            self.handle.read(first, &mut self.page)?;
            front.copy_from_slice(&self.page[offset..offset + front.len()]);
        }
        let first = first + u64::from(offset != 0);
        let (whole, back) = rest.as_chunks_mut::<PAGE_BYTES>();
        let last = first + whole.len() as u64;
        for (pages, from) in whole.chunks_mut(BATCH).zip((first..).step_by(BATCH)) {
            let numbers: [u64; BATCH] = std::array::from_fn(|at| from + at as u64);
            self.handle.read_many(&numbers[..pages.len()], pages)?;
        }
        if !back.is_empty() {
            self.handle.read(last, &mut self.page)?;
            back.copy_from_slice(&self.page[..back.len()]);
        }
        Ok(())
    }

    /// Writes `bytes` from `at` on.
    ///
    /// # Errors
    /// [`StoreError::OutOfRange`] before anything is written; [`StoreError::NoSpace`] when pages
    /// before the failing one are written, and those from it on are as they were.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.disk.figures.writes.fetch_add(1, Relaxed);
        let len = bytes.len() as u64;
        self.disk.figures.written_bytes.fetch_add(len, Relaxed);
        self.disk.within(at, len)?;
        if self.disk.null {
            return Ok(());
        }
        let (first, offset) = (at / PAGE, (at % PAGE) as usize);
        let cut = match offset {
            0 => 0,
            _ => bytes.len().min(PAGE_BYTES - offset),
        };
        let (front, rest) = bytes.split_at(cut);
        if !front.is_empty() {
            self.change(first, |page| {
                page[offset..offset + front.len()].copy_from_slice(front);
            })?;
        }
        let first = first + u64::from(offset != 0);
        let (whole, back) = rest.as_chunks::<PAGE_BYTES>();
        for (number, page) in (first..).zip(whole) {
            // Without the lock, another thread's change of part of this page could have read the
            // old page before this write and put it back after it.
            let _held = self.disk.lock(number);
            self.handle.write(number, page)?;
        }
        if !back.is_empty() {
            self.change(first + whole.len() as u64, |page| {
                page[..back.len()].copy_from_slice(back);
            })?;
        }
        Ok(())
    }

    /// Zeroes `len` bytes from `at` on.
    ///
    /// # Errors
    /// Those of [`Head::write`]; a part of a page at either end may need space.
    pub fn zero(&mut self, at: u64, len: u64, zeros: Zeros) -> Result<(), StoreError> {
        self.disk.within(at, len)?;
        if self.disk.null {
            return Ok(());
        }
        let end = at + len;
        let (first, last) = (at.div_ceil(PAGE), end / PAGE);
        if first > last {
            // Both ends lie within one page, which is then neither a first nor a last one.
            let (from, until) = ((at % PAGE) as usize, (end % PAGE) as usize);
            return self.change(last, |page| page[from..until].fill(0));
        }
        if !at.is_multiple_of(PAGE) {
            let from = (at % PAGE) as usize;
            self.change(first - 1, |page| page[from..].fill(0))?;
        }
        match zeros {
            Zeros::Free => self.free(first..last)?,
            Zeros::Keep => {
                for number in first..last {
                    let _held = self.disk.lock(number);
                    self.handle.write(number, &[0; PAGE_BYTES])?;
                }
            }
        }
        if !end.is_multiple_of(PAGE) {
            let until = (end % PAGE) as usize;
            self.change(last, |page| page[..until].fill(0))?;
        }
        Ok(())
    }

    /// Discards `pages`, but for those that were never touched: they read as zeros already, and a
    /// look at each would take memory for the index of the whole range, as when a file system is
    /// made on a large disk.
    fn free(&mut self, pages: Range<u64>) -> Result<(), StoreError> {
        let disk = self.disk;
        for number in disk.store.touched(pages) {
            let _held = disk.lock(number);
            self.handle.discard(number)?;
        }
        Ok(())
    }

    /// Reads a page, changes part of it and writes it back, under the page's lock.
    fn change(&mut self, number: u64, change: impl FnOnce(&mut Page)) -> Result<(), StoreError> {
        let _held = self.disk.lock(number);
        self.handle.read(number, &mut self.page)?;
        change(&mut self.page);
        self.handle.write(number, &self.page)
    }
}
