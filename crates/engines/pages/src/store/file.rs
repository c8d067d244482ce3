//! The backing file, for which pages can leave memory. Its bytes mean something only together with
//! the memory: the index says which page of the file belongs to which page of the store, and has
//! the checksum. Has `unsafe`: giving parts of the file back, a system call.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dyno_codec::lz4::Page;
use dyno_io::{Access, AlignedBuffer, BlockFile, Caching, IoError};

use super::handle::Handle;
use super::{BackingFile, Settings};
use crate::PAGE_BYTES;
use crate::error::{Damage, StoreError};
use crate::index::entry::{Entry, PAGE_PLACE_BITS, Stored};

/// The backing file and which of its pages are in use.
#[derive(Debug)]
pub struct Backing {
    file: BlockFile,
    /// A second handle, to punch holes with; the first one may be open for direct I/O.
    holes: File,
    /// The name by which people know the file, for messages.
    name: PathBuf,
    taken: Box<[AtomicU64]>,
    /// Pages that were freed, and whose blocks the file system still has.
    stale: Box<[AtomicU64]>,
    pages: u32,
}

/// Whether the file is emptied when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// For a new store: what the file held is lost.
    Empty,
    /// For a memory that is opened again, whose index points into the file.
    Kept,
}

impl Backing {
    pub fn from_settings(settings: &Settings, start: Start) -> Result<Option<Self>, StoreError> {
        let Some(BackingFile { path, pages }) = &settings.backing else {
            return Ok(None);
        };
        Self::open(path, *pages, start).map(Some)
    }

    fn open(path: &Path, pages: u32, start: Start) -> Result<Self, StoreError> {
        if pages == 0 || pages >> PAGE_PLACE_BITS != 0 {
            let text =
                format!("a file of {pages} pages: it must have 1 to 2^{PAGE_PLACE_BITS} - 1");
            return Err(StoreError::Settings(text));
        }
        let access = match start {
            Start::Empty => Access::Create,
            Start::Kept => Access::Update,
        };
        let file = match BlockFile::open(path, access, Caching::Direct) {
            // Pages leave memory for this file, and the page cache would put them back into memory.
            // Some file systems have nothing else, and memory that the system can reclaim is still
            // better than none.
            Err(IoError::DirectRefused { .. }) => BlockFile::open(path, access, Caching::Cached)?,
            opened => opened?,
        };
        // The program opens its nameless file by way of /proc, where the link says what it was
        // called.
        let name = std::fs::read_link(path).unwrap_or_else(|_| path.to_owned());
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let holes = opened.map_err(|source| IoError::System {
            action: "open",
            path: name.clone(),
            source,
        })?;
        let words = (pages as usize).div_ceil(64);
        let bits = || -> Box<[AtomicU64]> { (0..words).map(|_| AtomicU64::new(0)).collect() };
        let (taken, stale) = (bits(), bits());
        // Bits behind the last page are set for good, so that a search for a free bit never finds
        // them.
        if let (Some(last), rest @ 1..) = (taken.last(), pages % 64) {
            last.store(u64::MAX << rest, Relaxed);
        }
        Ok(Self {
            file,
            holes,
            name,
            taken,
            stale,
            pages,
        })
    }

    /// Bytes of memory that the bitmaps take.
    pub fn overhead_bytes(&self) -> u64 {
        ((self.taken.len() + self.stale.len()) * 8) as u64
    }

    pub fn claim(&self, place: u32) -> bool {
        let bit = 1 << (place % 64);
        place < self.pages && self.taken[place as usize / 64].fetch_or(bit, Relaxed) & bit == 0
    }

    pub fn free(&self, place: u32) {
        if place < self.pages {
            let (word, bit) = (place as usize / 64, 1 << (place % 64));
            // The mark is set before the page is free, so that no trim meets a free page without
            // it. A page that is in use again may still carry the mark; `trim` leaves it alone,
            // because it has to take the bit first.
            self.stale[word].fetch_or(bit, Relaxed);
            self.taken[word].fetch_and(!bit, std::sync::atomic::Ordering::Release);
        }
    }

    /// Gives the blocks of freed pages back to the file system, if it supports holes. `trim` takes
    /// the pages while it does so, so that no write goes to them in between.
    pub fn trim(&self) {
        for (word, stale) in self.stale.iter().enumerate() {
            let wanted = stale.load(Relaxed);
            if wanted == 0 {
                continue;
            }
            let before = self.taken[word].fetch_or(wanted, std::sync::atomic::Ordering::Acquire);
            let mut mine = wanted & !before;
            // Pages that are in use again keep their mark, and are given back after their next
            // free.
            stale.fetch_and(!mine, Relaxed);
            let all = mine;
            while mine != 0 {
                let first = mine.trailing_zeros();
                let run = (mine >> first).trailing_ones();
                // One call for each run of pages: the cost of a call hardly depends on its length.
                self.punch((word * 64) as u64 + u64::from(first), u64::from(run));
                let bits = if run == 64 { u64::MAX } else { (1 << run) - 1 };
                mine &= !(bits << first);
            }
            self.taken[word].fetch_and(!all, std::sync::atomic::Ordering::Release);
        }
    }

    fn punch(&self, page: u64, pages: u64) {
        let [at, len] = [page, pages].map(|count| (count * PAGE_BYTES as u64) as i64);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: no memory is passed. A file system that cannot do it keeps the blocks, which are
        // written over when a page takes the place.
        unsafe { libc::fallocate(self.holes.as_raw_fd(), mode, at, len) };
    }

    /// Pages that it can hold.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The name by which people know the file.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Puts the name that people know into an error, in place of the path under /proc.
    fn named(&self, error: IoError) -> IoError {
        match error {
            IoError::System { action, source, .. } => IoError::System {
                action,
                path: self.name.clone(),
                source,
            },
            other => other,
        }
    }

    fn allocate(&self, from_word: &mut usize) -> Option<u32> {
        while let Some(word) = self.taken.get(*from_word) {
            let free = !word.load(Relaxed);
            if free == 0 {
                *from_word += 1;
                continue;
            }
            let place = (*from_word * 64) as u32 + free.trailing_zeros();
            // Another thread may take the bit between the load and the claim; then the word is
            // looked at again.
            if self.claim(place) {
                return Some(place);
            }
        }
        None
    }

    /// Whether the file is read and written past the page cache.
    pub fn direct(&self) -> bool {
        self.file.caching() == Caching::Direct
    }
}

/// Which pages are written back, by the passes of [`crate::Store::age`] since their last
/// touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteBack {
    /// Least age of packed pages; `None` leaves them in memory.
    pub packed: Option<u8>,
    /// Least age of incompressible pages; `None` leaves them in memory.
    pub raw: Option<u8>,
}

impl WriteBack {
    fn means(self, word: u64) -> Option<Entry> {
        let found = Entry::unpack(word)?;
        let least = match found.stored {
            Stored::Raw { .. } => self.raw,
            Stored::Packed { .. } => self.packed,
            Stored::Empty | Stored::Fill { .. } | Stored::File { .. } => None,
        };
        least.filter(|&least| found.age >= least).map(|_| found)
    }
}

/// What one call of [`Handle::write_back`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrittenBack {
    /// Pages that were moved from memory to the file.
    pub pages: u64,
    /// The page from which the next call goes on; 0 if this one met the end, or the file is full.
    pub next_page: u64,
}

impl Handle<'_> {
    /// Moves up to `most` of the pages that `which` selects, from `from_page` on, from memory to
    /// the file: fewer if there are no more or the file is full. The file is not synced, because it
    /// is of no use after a crash of the machine, which the memory does not survive. A crash of
    /// this process alone loses nothing: an entry says that its page is in the file only once it
    /// was written.
    ///
    /// A damaged page is noted and stays in memory; so does one that another thread has locked.
    ///
    /// # Errors
    /// [`StoreError::NoFile`], and errors of the file; the page stays in memory then.
    pub fn write_back(
        &mut self,
        from_page: u64,
        most: u64,
        which: WriteBack,
    ) -> Result<WrittenBack, StoreError> {
        let store = self.store();
        let backing = store.backing.as_ref().ok_or(StoreError::NoFile)?;
        let mut done = WrittenBack::default();
        let mut from_word = 0;
        for page in store.touched_from(from_page) {
            // The first look is without the lock, as most pages are not selected; it is repeated
            // under it.
            if which.means(store.peek(page)).is_none() {
                continue;
            }
            if done.pages == most {
                done.next_page = page;
                break;
            }
            // A locked page is in use now, so it is a bad choice in any case.
            let Some(word) = store.try_lock(page, self.mark()) else {
                continue;
            };
            let Some(old) = which.means(word) else {
                store.unlock(page, word, self.mark());
                continue;
            };
            let outcome = self.move_out(backing, page, old, &mut from_word);
            let new = match &outcome {
                Ok(Some(new)) => new.pack(),
                _ => word,
            };
            store.unlock(page, new, self.mark());
            match outcome {
                // The file is full.
                Ok(None) => break,
                Ok(Some(_)) => {
                    store.release(old.stored);
                    done.pages += 1;
                }
                Err(error @ StoreError::Corrupt { .. }) => store.note_damage(&error),
                Err(error) => {
                    store.kept_back.fetch_add(1, Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(done)
    }

    /// Writes one page to the file and returns its new entry; `None` if the file is full. The
    /// caller holds the entry's lock.
    fn move_out(
        &mut self,
        backing: &Backing,
        page: u64,
        old: Entry,
        from_word: &mut usize,
    ) -> Result<Option<Entry>, StoreError> {
        let mut bytes = [0; PAGE_BYTES];
        self.fetch_verified(old.stored, page, &mut bytes)?;
        let Some(place) = backing.allocate(from_word) else {
            return Ok(None);
        };
        let block = self.transfer_block();
        block.copy_from_slice(&bytes);
        let written = backing
            .file
            .write_at(u64::from(place) * PAGE_BYTES as u64, block);
        if let Err(error) = written {
            backing.free(place);
            return Err(backing.named(error).into());
        }
        // The sum is computed anew only over bytes that were just compared with the old one.
        let sum = self.sum_of(&bytes, page);
        Ok(Some(Entry {
            stored: Stored::File { place, sum },
            ..old
        }))
    }

    /// Reads a page from the file. The caller compares its sum.
    #[cold]
    pub(super) fn read_file(
        &mut self,
        place: u32,
        page: u64,
        bytes: &mut Page,
    ) -> Result<(), StoreError> {
        let backing = self.store().backing.as_ref().ok_or(StoreError::NoFile)?;
        let block = self.transfer_block();
        let at = u64::from(place) * PAGE_BYTES as u64;
        let read = backing.file.read_at(at, block);
        if read.map_err(|error| backing.named(error))? != PAGE_BYTES {
            let what = Damage::File;
            return Err(StoreError::Corrupt { page, what });
        }
        bytes.copy_from_slice(block);
        Ok(())
    }

    fn transfer_block(&mut self) -> &mut [u8] {
        self.transfer
            .get_or_insert_with(|| AlignedBuffer::zeroed(PAGE_BYTES))
    }
}
