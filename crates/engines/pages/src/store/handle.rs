//! The handle by which one thread reads and writes a store. Has `unsafe`: stored bytes as slices,
//! under their lock.

mod fetch;

use std::sync::Arc;

use dyno_checksum::crc32c;
use dyno_codec::lz4::{self, BLOCK_BOUND, Block, Page};
use dyno_codec::{dictionary, repeat, zstd};
use dyno_io::AlignedBuffer;

use super::shared::{Shared, content_of};
use super::slot_access::{Extent, SUM_BYTES, bound_sum, extent};
use super::{Store, Tiers};
use crate::PAGE_BYTES;
use crate::error::{Damage, StoreError};
use crate::index::entry::{Entry, Packing, Stored};
use crate::index::lock::{LOCKED, Mark};

/// How many pages ahead of the one being read entries and bytes are prefetched.
const AHEAD: usize = 6;
/// Bytes of a slot that are prefetched: most of an ordinary page's block.
const AHEAD_BYTES: usize = 1024;

/// Reads and writes for one thread. It owns all working memory, so that no call allocates.
#[derive(Debug)]
pub struct Handle<'a> {
    store: &'a Store,
    /// Names the page whose lock this thread holds, for threads that wait for it.
    mark: Arc<Mark>,
    encoder: lz4::Encoder,
    /// `Some` only if zstd packs pages when they are written.
    frames: Option<zstd::Encoder>,
    decoder: dictionary::Decoder,
    /// Aligned buffer through which pages go to the backing file and come back; `Some` if there is
    /// one.
    pub(super) transfer: Option<AlignedBuffer>,
    block: Box<Block>,
    /// Scratch buffer for comparing a candidate duplicate. `Some` only if pages share slots.
    twin: Option<Box<Page>>,
    /// A packed form longer than this takes as long a slot as the page itself.
    limit_bytes: usize,
}

impl<'a> Handle<'a> {
    pub(super) fn new(store: &'a Store) -> Result<Self, StoreError> {
        let mut handle = Self {
            store,
            mark: store.holders.mark(),
            encoder: lz4::Encoder::new(store.settings.writer),
            frames: match store.settings.tiers {
                Tiers::Zstd => Some(zstd::Encoder::new(store.settings.level)?),
                Tiers::Lz4 | Tiers::Lz4ThenZstd => None,
            },
            decoder: dictionary::Decoder::new()?,
            transfer: store
                .backing
                .as_ref()
                .map(|_| AlignedBuffer::zeroed(PAGE_BYTES)),
            block: Box::new([0; BLOCK_BOUND]),
            twin: store.shared.as_ref().map(|_| Box::new([0; PAGE_BYTES])),
            limit_bytes: store.slots.classes().longest_that_pays() - SUM_BYTES,
        };
        if let Some(dictionary) = store.dictionary.get() {
            handle.decoder.prepare(dictionary);
        }
        if let Some(frames) = &mut handle.frames {
            // The library allocates with the first page, and no call of a handle may allocate: a
            // store that serves swap could not get the memory.
            let _length = frames.encode(&[0; PAGE_BYTES], &mut handle.block, BLOCK_BOUND);
        }
        Ok(handle)
    }

    /// Stores `bytes` as page `page`. If it fails, the page is as it was.
    ///
    /// When the limit is reached, the call first moves pages together and, if the store has a
    /// backing file, writes pages back to it, which can take milliseconds. Even then a page that
    /// the store already has can be overwritten, unless its new form is longer than its slot.
    ///
    /// # Errors
    /// [`StoreError::NoSpace`] or [`StoreError::OutOfRange`]; [`StoreError::Corrupt`] when the lock
    /// of the page's entry is damaged.
    pub fn write(&mut self, page: u64, bytes: &Page) -> Result<(), StoreError> {
        self.store.in_range(page)?;
        match self.write_if_space(page, bytes) {
            Err(StoreError::NoSpace { .. }) => self.write_when_full(page, bytes),
            done => done,
        }
    }

    #[inline(always)]
    pub(super) fn write_if_space(&mut self, page: u64, bytes: &Page) -> Result<(), StoreError> {
        let stored = self.form(page, bytes)?;
        self.replace(page, stored)
    }

    /// Stores `pages` from page `first` on; most efficient with 32 or more at a time.
    ///
    /// # Errors
    /// Those of [`Handle::write`]; pages before the failing one are stored, those behind it are as
    /// they were.
    pub fn write_many(&mut self, first: u64, pages: &[Page]) -> Result<(), StoreError> {
        for (number, bytes) in (first..).zip(pages) {
            self.write(number, bytes)?;
        }
        Ok(())
    }

    /// Reads page `page`. A page that was never written, or was discarded, reads as zeros.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the page is not what was written; `bytes` are zeros then.
    pub fn read(&mut self, page: u64, bytes: &mut Page) -> Result<(), StoreError> {
        self.store.in_range(page)?;
        let done = self.read_entry(page, bytes);
        if let Err(error) = &done {
            bytes.fill(0);
            self.store.refuse_damaged(error);
        }
        done
    }

    #[inline(always)]
    fn read_entry(&mut self, page: u64, bytes: &mut Page) -> Result<(), StoreError> {
        let word = self.store.lock(page, &self.mark)?;
        let unpacked = Entry::unpack(word);
        let done = match unpacked {
            Some(found) => self.fetch(found.stored, page, bytes),
            None => Err(StoreError::Corrupt {
                page,
                what: Damage::Entry { entry: word },
            }),
        };
        // A read counts as a touch. An entry that cannot be decoded stays as it is, so that the
        // damage is still there for the next reader.
        let touched = unpacked.map_or(word, |found| Entry { age: 0, ..found }.pack());
        self.store.unlock(page, touched, &self.mark);
        // Where zstd packs pages when they are written, that is the form that they go back to.
        if unpacked.is_some_and(Entry::was_wrongly_idle) && self.frames.is_none() {
            self.store.reread.note(page);
        }
        done
    }

    /// Reads any pages, and prefetches the bytes of the ones that follow.
    ///
    /// # Errors
    /// Those of [`Handle::read`] for the first page that fails; those before it are read.
    ///
    /// # Panics
    /// When `pages` and `into` differ in length.
    pub fn read_many(&mut self, pages: &[u64], into: &mut [Page]) -> Result<(), StoreError> {
        assert_eq!(pages.len(), into.len(), "a place for each page");
        for &page in pages.iter().take(2 * AHEAD) {
            self.store.in_range(page)?;
            self.store.memory.prefetch_entry(page);
        }
        for (at, (&page, bytes)) in pages.iter().zip(into).enumerate() {
            // Entries are prefetched twice as far ahead as bytes: where a page's bytes are is known
            // only once its entry has come.
            if let Some(&far) = pages.get(at + 2 * AHEAD) {
                self.store.in_range(far)?;
                self.store.memory.prefetch_entry(far);
            }
            if let Some(&next) = pages.get(at + AHEAD) {
                self.store.prefetch(next);
            }
            self.read(page, bytes)?;
        }
        Ok(())
    }

    /// Forgets page `page`: from now on it reads as zeros, and its memory is free.
    ///
    /// # Errors
    /// [`StoreError::OutOfRange`].
    pub fn discard(&mut self, page: u64) -> Result<(), StoreError> {
        self.store.in_range(page)?;
        self.replace(page, Stored::Empty)
    }

    /// Forgets every page.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the lock of an entry is damaged; pages before it are forgotten.
    pub fn discard_all(&mut self) -> Result<(), StoreError> {
        self.store
            .touched_from(0)
            .try_for_each(|page| self.replace(page, Stored::Empty))
    }

    /// The mark of this thread, for locks that it takes outside of this type.
    pub(super) fn mark(&self) -> &Mark {
        &self.mark
    }

    pub(super) fn store(&self) -> &'a Store {
        self.store
    }

    /// The checksum of `bytes`, bound to page `page`.
    pub(super) fn sum_of(&self, bytes: &Page, page: u64) -> u32 {
        bound_sum(crc32c(bytes), page)
    }

    /// Reads page `page`, which is in range, without counting as a touch, and compares its checksum
    /// whatever the settings say.
    pub(super) fn look(&mut self, page: u64, bytes: &mut Page) -> Result<(), StoreError> {
        let word = self.store.lock(page, &self.mark)?;
        let done = match Entry::unpack(word) {
            Some(found) => self.fetch_verified(found.stored, page, bytes),
            None => Err(StoreError::Corrupt {
                page,
                what: Damage::Entry { entry: word },
            }),
        };
        self.store.unlock(page, word, &self.mark);
        done
    }

    /// Puts `bytes` into their stored form, and that into a slot if it needs one.
    #[inline(always)]
    fn form(&mut self, page: u64, bytes: &Page) -> Result<Stored, StoreError> {
        if let Some(word) = repeat::word_of(bytes) {
            return self.form_repeated(page, bytes, word);
        }
        let store = self.store;
        match &store.shared {
            None => self.form_alone(page, bytes),
            Some(shared) => self.form_shared(shared, page, bytes),
        }
    }

    /// Finds the slot of an equal page, or makes a new one.
    #[cold]
    fn form_shared(
        &mut self,
        shared: &Shared,
        page: u64,
        bytes: &Page,
    ) -> Result<Stored, StoreError> {
        let content = content_of(bytes);
        let mut twin = self
            .twin
            .take()
            .unwrap_or_else(|| Box::new([0; PAGE_BYTES]));
        // A hash that is equal proves nothing: the bytes are compared too, so a collision costs a
        // slot and never returns another page's content. A slot with a damaged sum is not joined,
        // because no reader would accept its bytes.
        let joined = shared.join(content, |stored| {
            self.unpack_slot(stored, page, &mut twin).is_ok() && *twin == *bytes
        });
        self.twin = Some(twin);
        match joined {
            // An incompressible page has its sum in the entry, where it is bound to the page
            // number, so each page that shares the slot has a sum of its own.
            Some(Stored::Raw { place, .. }) => {
                let sum = bound_sum(crc32c(bytes), page);
                Ok(Stored::Raw { place, sum })
            }
            Some(stored) => Ok(stored),
            None => {
                let stored = self.form_alone(page, bytes)?;
                shared.add(content, stored);
                Ok(stored)
            }
        }
    }

    #[inline(always)]
    fn form_alone(&mut self, page: u64, bytes: &Page) -> Result<Stored, StoreError> {
        match self.encode_page(bytes) {
            Form::Packed { packing, len, sum } => {
                let sum = self.store.slot_sum(sum, page);
                self.store.store_packed(packing, &self.block[..len], sum)
            }
            Form::Raw { sum } => self.store.store_raw(bytes, bound_sum(sum, page)),
        }
    }

    /// Encodes any page that needs a slot; the packed bytes are then in [`Handle::packed`].
    pub(super) fn encode(&mut self, bytes: &Page) -> Form {
        match repeat::word_of(bytes) {
            Some(word) => {
                self.block[..8].copy_from_slice(&word.to_le_bytes());
                Form::Packed {
                    packing: Packing::Word,
                    len: 8,
                    sum: crc32c(bytes),
                }
            }
            None => self.encode_page(bytes),
        }
    }

    /// The packed bytes of the last page.
    pub(super) fn packed(&self, len: usize) -> &[u8] {
        &self.block[..len]
    }

    #[inline(always)]
    fn encode_page(&mut self, bytes: &Page) -> Form {
        // The sum comes first, because it brings the page into the nearest cache for the encoder.
        let sum = crc32c(bytes);
        let limit = self.limit_bytes;
        let (packing, len) = match &mut self.frames {
            None => (
                Packing::Lz4,
                self.encoder.encode(bytes, &mut self.block, limit),
            ),
            Some(frames) => (Packing::Zstd, frames.encode(bytes, &mut self.block, limit)),
        };
        match len {
            Some(len) => Form::Packed { packing, len, sum },
            None => Form::Raw { sum },
        }
    }

    fn form_repeated(&self, page: u64, bytes: &Page, word: u64) -> Result<Stored, StoreError> {
        let pattern = word as u16;
        let sum = match word {
            0 => ZERO_PAGE_SUM,
            _ => crc32c(bytes),
        };
        if word == u64::from(pattern) * 0x0001_0001_0001_0001 {
            let sum = bound_sum(sum, page);
            return Ok(Stored::Fill { pattern, sum });
        }
        let sum = self.store.slot_sum(sum, page);
        self.store
            .store_packed(Packing::Word, &word.to_le_bytes(), sum)
    }

    /// Points the entry at `stored`, and frees what it pointed at, if that was the page's own: what
    /// a damaged entry pointed at may be another page, and the slot that it lost stays taken until
    /// the memory is opened again. If the entry cannot be locked, the new form is freed instead.
    #[inline(always)]
    fn replace(&self, page: u64, stored: Stored) -> Result<(), StoreError> {
        let old = match self.store.lock(page, &self.mark) {
            Ok(old) => old,
            Err(error) => {
                self.store.release(stored);
                self.store.note_damage(&error);
                return Err(error);
            }
        };
        let own = Entry::unpack(old)
            .map(|old| old.stored)
            .filter(|&old| self.store.is_own(old, page));
        self.store
            // One store puts the new entry in place and gives the lock back. A process killed
            // before it leaves the old page, one killed after it the new one; the form that no
            // entry points at is free again when the memory is opened.
            .unlock(page, Entry::fresh(stored).pack(), &self.mark);
        if let Some(own) = own {
            self.store.release(own);
        }
        Ok(())
    }
}

/// The form of a page before it has a slot. Sums are of the page alone, not bound to its number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// This many bytes of [`Handle::packed`].
    Packed {
        packing: Packing,
        len: usize,
        sum: u32,
    },
    /// The page as it is, because no codec makes it shorter.
    Raw { sum: u32 },
}

impl Form {
    /// Bytes of a slot that it needs.
    pub(super) fn stored_bytes(&self) -> usize {
        match self {
            Self::Packed { len, .. } => len + SUM_BYTES,
            Self::Raw { .. } => PAGE_BYTES,
        }
    }
}

/// CRC32C of a page of zeros: this is by far the most frequent page, and a constant saves a pass
/// over 4096 bytes.
pub const ZERO_PAGE_SUM: u32 = 0x98f9_4189;

impl Store {
    /// Prefetches the bytes of a page that will be read soon. It is a hint, so the lock is not
    /// taken and an entry that changes meanwhile does no harm.
    #[inline(always)]
    fn prefetch(&self, page: u64) {
        let word = self
            .memory
            .entry(page)
            .load(std::sync::atomic::Ordering::Relaxed);
        if let Some(found) = Entry::unpack(word & !LOCKED)
            && let Some(Extent { at, len }) = extent(found.stored)
        {
            self.memory.prefetch(at, len.min(AHEAD_BYTES));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sum_of_zeros_is_the_constant() {
        assert_eq!(super::crc32c(&[0; 4096]), super::ZERO_PAGE_SUM);
    }
}
