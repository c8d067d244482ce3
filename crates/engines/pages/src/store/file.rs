//! A file that pages can leave memory for. Its bytes mean something together with the memory alone:
//! the index says which page of the file is whose, and has the checksum.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dyno_codec::lz4::Page;
use dyno_io::{Access, AlignedBuffer, BlockFile, Caching, IoError};

use super::Settings;
use super::lane::Lane;
use crate::PAGE_BYTES;
use crate::error::{Damage, StoreError};
use crate::index::entry::{Entry, PAGE_PLACE_BITS, Stored};
use crate::index::lock::{lock, unlock};

/// Which pages of the file are taken.
#[derive(Debug)]
pub struct Backing {
    file: BlockFile,
    taken: Box<[AtomicU64]>,
    pages: u32,
}

/// Whether the file begins empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With a new store.
    Empty,
    /// With one that has pages in it.
    Kept,
}

impl Backing {
    pub fn of(settings: &Settings, start: Start) -> Result<Option<Self>, StoreError> {
        let Some((path, pages)) = &settings.backing else {
            return Ok(None);
        };
        Self::open(path, *pages, start).map(Some)
    }

    fn open(path: &Path, pages: u32, start: Start) -> Result<Self, StoreError> {
        if pages == 0 || pages >> PAGE_PLACE_BITS != 0 {
            let text = format!("a file of {pages} pages: 1 to 2^{PAGE_PLACE_BITS} - 1 can be");
            return Err(StoreError::Settings(text));
        }
        let access = match start {
            Start::Empty => Access::Create,
            Start::Kept => Access::Update,
        };
        let file = match BlockFile::open(path, access, Caching::Direct) {
            // Pages left memory for it; a cache of it is memory again, but all that some file systems have.
            Err(IoError::DirectRefused { .. }) => BlockFile::open(path, access, Caching::Cached)?,
            opened => opened?,
        };
        let words = (pages as usize).div_ceil(64);
        let taken: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        // Bits behind the last page are never free.
        if let (Some(last), rest @ 1..) = (taken.last(), pages % 64) {
            last.store(u64::MAX << rest, Relaxed);
        }
        Ok(Self { file, taken, pages })
    }

    /// Bytes of memory that this takes.
    pub fn overhead_bytes(&self) -> u64 {
        (self.taken.len() * 8) as u64
    }

    pub fn claim(&self, place: u32) -> bool {
        let bit = 1 << (place % 64);
        place < self.pages && self.taken[place as usize / 64].fetch_or(bit, Relaxed) & bit == 0
    }

    pub fn free(&self, place: u32) {
        if place < self.pages {
            self.taken[place as usize / 64].fetch_and(!(1 << (place % 64)), Relaxed);
        }
    }

    fn take(&self, from_word: &mut usize) -> Option<u32> {
        while let Some(word) = self.taken.get(*from_word) {
            let free = !word.load(Relaxed);
            if free == 0 {
                *from_word += 1;
                continue;
            }
            let place = (*from_word * 64) as u32 + free.trailing_zeros();
            if self.claim(place) {
                return Some(place);
            }
        }
        None
    }

    /// Whether it is read and written past the page cache.
    pub fn direct(&self) -> bool {
        self.file.caching() == Caching::Direct
    }
}

/// Which pages leave memory for the file, by passes of [`Store::age`] that they were not touched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteBack {
    /// For packed pages; nothing: none.
    pub packed: Option<u8>,
    /// For pages that nothing packs; nothing: none.
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

/// What one call of [`Lane::write_back`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrittenBack {
    /// Pages that left memory.
    pub pages: u64,
    /// Where the next call goes on, 0 when this one met the end or the file is full.
    pub next_page: u64,
}

impl Lane<'_> {
    /// Moves up to `most` of the pages that `which` means, from `from_page` on, from memory to the file: less
    /// than `most` when there are no more or the file is full. The file is not synced: it is of no use after
    /// a crash of the machine, which the memory does not outlive. Of a crash of this process it knows
    /// nothing: an entry says that its page is in the file when it is.
    ///
    /// # Errors
    /// [`StoreError::NoFile`], and what the file answers; the page is in memory then.
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
        for page in from_page..store.pages() {
            // Looked at without the lock first, as most pages are not meant.
            if which.means(store.peek(page)).is_none() {
                continue;
            }
            if done.pages == most {
                done.next_page = page;
                break;
            }
            let entry = store.memory.entry(page);
            let word = lock(entry);
            let outcome = match which.means(word) {
                None => Ok(None),
                Some(old) => self.move_out(backing, page, old, &mut from_word),
            };
            match &outcome {
                Ok(Some((new, _))) => unlock(entry, new.pack()),
                _ => unlock(entry, word),
            }
            match outcome {
                Ok(None) if which.means(word).is_some() => break,
                Ok(None) => {}
                Ok(Some((_, old))) => {
                    store.release(old);
                    done.pages += 1;
                }
                Err(error) => {
                    store.kept_back.fetch_add(1, Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(done)
    }

    /// Nothing when the file is full.
    fn move_out(
        &mut self,
        backing: &Backing,
        page: u64,
        old: Entry,
        from_word: &mut usize,
    ) -> Result<Option<(Entry, Stored)>, StoreError> {
        let mut bytes = [0; PAGE_BYTES];
        self.fetch(old.stored, page, &mut bytes)?;
        let Some(place) = backing.take(from_word) else {
            return Ok(None);
        };
        let block = self.transfer_block();
        block.copy_from_slice(&bytes);
        let written = backing
            .file
            .write_at(u64::from(place) * PAGE_BYTES as u64, block);
        if let Err(error) = written {
            backing.free(place);
            return Err(error.into());
        }
        // The sum goes along; a page that was damaged in memory was refused just now.
        let sum = self.sum_of(&bytes, page);
        Ok(Some((
            Entry {
                stored: Stored::File { place, sum },
                ..old
            },
            old.stored,
        )))
    }

    /// Reads a page that is in the file; the caller compares its sum.
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
        if backing.file.read_at(at, block)? != PAGE_BYTES {
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
