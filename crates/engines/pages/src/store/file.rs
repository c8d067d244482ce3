//! A file that pages can leave memory for. Its bytes mean something together with the memory alone:
//! the index says which page of the file is whose, and has the checksum.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dyno_codec::lz4::Page;
use dyno_io::{Access, BlockFile, Caching};

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
        let file = BlockFile::open(path, access, Caching::Cached)?;
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

    pub fn read(&self, place: u32, page: u64, bytes: &mut Page) -> Result<(), StoreError> {
        match self
            .file
            .read_at(u64::from(place) * PAGE_BYTES as u64, bytes)?
        {
            PAGE_BYTES => Ok(()),
            _ => Err(StoreError::Corrupt {
                page,
                what: Damage::File,
            }),
        }
    }
}

impl Lane<'_> {
    /// Moves up to `most` pages that were not touched for `idle` passes of [`Store::age`] from
    /// memory to the file, the incompressible ones alone unless `also_packed`. Returns how many, less
    /// than `most` when there are no more or the file is full. The file is not synced: it is of no
    /// use after a crash of the machine, which the memory does not outlive.
    ///
    /// # Errors
    /// [`StoreError::NoFile`], and what the file answers; the page is in memory then.
    pub fn write_back(
        &mut self,
        most: u64,
        idle: u8,
        also_packed: bool,
    ) -> Result<u64, StoreError> {
        let store = self.store();
        let backing = store.backing.as_ref().ok_or(StoreError::NoFile)?;
        let mut moved = 0;
        let mut from_word = 0;
        for page in 0..store.pages() {
            if moved == most {
                break;
            }
            // Looked at without the lock first, as most pages are not meant.
            let meant = |word| movable(word, idle, also_packed);
            if meant(store.peek(page)).is_none() {
                continue;
            }
            let entry = store.memory.entry(page);
            let word = lock(entry);
            let outcome = match meant(word) {
                None => Ok(None),
                Some(old) => self.move_out(backing, page, old, &mut from_word),
            };
            match &outcome {
                Ok(Some((new, _))) => unlock(entry, new.pack()),
                _ => unlock(entry, word),
            }
            match outcome? {
                None if meant(word).is_some() => break,
                None => {}
                Some((_, old)) => {
                    store.release(old);
                    moved += 1;
                }
            }
        }
        Ok(moved)
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
        let written = backing
            .file
            .write_at(u64::from(place) * PAGE_BYTES as u64, &bytes);
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
}

fn movable(word: u64, idle: u8, also_packed: bool) -> Option<Entry> {
    let found = Entry::unpack(word)?;
    let kind = match found.stored {
        Stored::Raw { .. } => true,
        Stored::Packed { .. } => also_packed,
        Stored::Empty | Stored::Fill { .. } | Stored::File { .. } => false,
    };
    (kind && found.age >= idle).then_some(found)
}
