//! A thread's way in and out of a store. Has `unsafe`: stored bytes as slices, under their lock.

use std::sync::Arc;

use dyno_checksum::crc32c;
use dyno_codec::lz4::{self, BLOCK_BOUND, Block, Page};
use dyno_codec::{repeat, zstd};
use dyno_io::AlignedBuffer;

use super::place::{SUM_BYTES, bound_sum, extent};
use super::shared::{Shared, content_of};
use super::{Store, Tiers};
use crate::PAGE_BYTES;
use crate::error::{Damage, StoreError};
use crate::index::entry::{Entry, Packing, Stored};
use crate::index::lock::{LOCKED, Mark};

/// Pages ahead of the one being read whose entries and bytes are asked for.
const AHEAD: usize = 6;
/// Lines of a slot asked for ahead: most of an ordinary page's block.
const AHEAD_BYTES: usize = 1024;

/// Reads and writes for one thread. Holds all working memory, so that no call allocates.
#[derive(Debug)]
pub struct Lane<'a> {
    store: &'a Store,
    /// Says whose lock this thread holds.
    mark: Arc<Mark>,
    encoder: lz4::Encoder,
    /// There when zstd packs what is written.
    frames: Option<zstd::Encoder>,
    decoder: zstd::Decoder,
    /// Through which pages go to the file and come back; there when there is one.
    pub(super) transfer: Option<AlignedBuffer>,
    block: Box<Block>,
    /// A page that may equal the one being written; there when pages share slots.
    twin: Option<Box<Page>>,
    /// A packed form longer than this is not better than the page.
    limit_bytes: usize,
}

impl<'a> Lane<'a> {
    pub(super) fn new(store: &'a Store) -> Result<Self, StoreError> {
        let mut lane = Self {
            store,
            mark: store.holders.mark(),
            encoder: lz4::Encoder::new(store.settings.writer),
            frames: match store.settings.tiers {
                Tiers::Zstd => Some(zstd::Encoder::new(store.settings.level)?),
                Tiers::Lz4 | Tiers::Lz4ThenZstd => None,
            },
            decoder: zstd::Decoder::new()?,
            transfer: store
                .backing
                .as_ref()
                .map(|_| AlignedBuffer::zeroed(PAGE_BYTES)),
            block: Box::new([0; BLOCK_BOUND]),
            twin: store.shared.as_ref().map(|_| Box::new([0; PAGE_BYTES])),
            limit_bytes: store.slots.classes().longest_that_pays() - SUM_BYTES,
        };
        if let Some(frames) = &mut lane.frames {
            // The library takes its memory with the first page; no call of a lane allocates.
            let _length = frames.encode(&[0; PAGE_BYTES], &mut lane.block, BLOCK_BOUND);
        }
        Ok(lane)
    }

    /// Stores `bytes` as page `page`. When it fails, the page is as it was.
    ///
    /// When the limit is reached, the call first moves pages together and, when the store has a
    /// file, writes pages back to it, which can take milliseconds. A page that the store has
    /// already can be overwritten even then, unless its new form is longer than its slot.
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

    /// Stores `pages` from page `first` on, at best 32 or more at a time.
    ///
    /// # Errors
    /// Those of [`Lane::write`]; pages before the failing one are stored, those behind are as they
    /// were.
    pub fn write_many(&mut self, first: u64, pages: &[Page]) -> Result<(), StoreError> {
        for (number, bytes) in (first..).zip(pages) {
            self.write(number, bytes)?;
        }
        Ok(())
    }

    /// Reads page `page`; one never written, or discarded, is zeros.
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
        // Read means touched. An entry that cannot be read stays as it is.
        let touched = unpacked.map_or(word, |found| Entry { age: 0, ..found }.pack());
        self.store.unlock(page, touched, &self.mark);
        done
    }

    /// Reads any pages, asking for the next ones' bytes ahead.
    ///
    /// # Errors
    /// Those of [`Lane::read`] for the first page that fails; those before it are read.
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

    /// Forgets page `page`: it reads as zeros, and its memory is free.
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

    /// Says whose lock this thread holds.
    pub(super) fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Its store.
    pub(super) fn store(&self) -> &'a Store {
        self.store
    }

    /// The checksum of `bytes` as page `page`.
    pub(super) fn sum_of(&self, bytes: &Page, page: u64) -> u32 {
        bound_sum(crc32c(bytes), page)
    }

    /// Reads page `page`, which is in range, without touching its age.
    pub(super) fn look(&mut self, page: u64, bytes: &mut Page) -> Result<(), StoreError> {
        let word = self.store.lock(page, &self.mark)?;
        let done = match Entry::unpack(word) {
            Some(found) => self.fetch(found.stored, page, bytes),
            None => Err(StoreError::Corrupt {
                page,
                what: Damage::Entry { entry: word },
            }),
        };
        self.store.unlock(page, word, &self.mark);
        done
    }

    /// The form that `bytes` are stored in, in its slot.
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

    /// The slot of a page that is there already, or one of its own.
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
        let joined = shared.join(content, |stored| {
            self.unpack_slot(stored, page, &mut twin).is_ok() && *twin == *bytes
        });
        self.twin = Some(twin);
        match joined {
            // A page kept as it is has its sum in the entry, where it is bound to the page.
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

    /// What a slot holds, without a look at its sum. The caller must keep the slot from being
    /// freed.
    fn unpack_slot(
        &mut self,
        stored: Stored,
        page: u64,
        bytes: &mut Page,
    ) -> Result<(), StoreError> {
        let (at, len) = self.store.extent_of(stored, page)?;
        // SAFETY: the caller's word.
        let form = unsafe { self.store.stored_bytes(at, len) };
        match stored {
            Stored::Packed { packing, .. } => self
                .unpack(packing, &form[SUM_BYTES..], bytes)
                .map_err(|what| StoreError::Corrupt { page, what }),
            _ => {
                bytes.copy_from_slice(form);
                Ok(())
            }
        }
    }

    #[inline(always)]
    fn form_alone(&mut self, page: u64, bytes: &Page) -> Result<Stored, StoreError> {
        match self.encode_page(bytes) {
            Form::Packed { packing, len, sum } => {
                let sum = self.store.slot_sum(sum, page);
                self.store.place_packed(packing, &self.block[..len], sum)
            }
            Form::Raw { sum } => self.store.place_raw(bytes, bound_sum(sum, page)),
        }
    }

    /// The form of any page that needs a slot; what it is packed to lies in [`Lane::packed`].
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

    /// What the last page was packed to.
    pub(super) fn packed(&self, len: usize) -> &[u8] {
        &self.block[..len]
    }

    #[inline(always)]
    fn encode_page(&mut self, bytes: &Page) -> Form {
        // First, as it brings the page into the nearest cache for what follows.
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
            .place_packed(Packing::Word, &word.to_le_bytes(), sum)
    }

    /// Points the entry at `stored`, and frees what it pointed at. When the entry cannot be locked,
    /// what was made for it is free again.
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
        self.store
            .unlock(page, Entry::fresh(stored).pack(), &self.mark);
        if let Some(old) = Entry::unpack(old) {
            self.store.release(old.stored);
        }
        Ok(())
    }

    /// The page that `stored` stands for. The caller holds the lock of the entry.
    #[inline(always)]
    pub(super) fn fetch(
        &mut self,
        stored: Stored,
        page: u64,
        bytes: &mut Page,
    ) -> Result<(), StoreError> {
        let sum = match stored {
            Stored::Empty => {
                bytes.fill(0);
                return Ok(());
            }
            Stored::Fill { pattern, sum } => {
                let word = u64::from(pattern) * 0x0001_0001_0001_0001;
                repeat::fill(bytes, word);
                // The page is made from the entry; what can be wrong is the entry.
                if pattern == 0 && sum == bound_sum(ZERO_PAGE_SUM, page) {
                    return Ok(());
                }
                sum
            }
            Stored::Raw { sum, .. } => {
                let (at, len) = self.store.extent_of(stored, page)?;
                // SAFETY: the caller holds the entry's lock.
                bytes.copy_from_slice(unsafe { self.store.stored_bytes(at, len) });
                sum
            }
            Stored::File { place, sum } => {
                self.read_file(place, page, bytes)?;
                sum
            }
            Stored::Packed { packing, .. } => {
                let (at, len) = self.store.extent_of(stored, page)?;
                // All lines at once; the decoder would wait for one after the other.
                self.store.memory.prefetch(at, len);
                // SAFETY: the caller holds the entry's lock.
                let form = unsafe { self.store.stored_bytes(at, len) };
                let (sum, form) = form.split_at(SUM_BYTES);
                let sum = u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]);
                self.unpack(packing, form, bytes)
                    .map_err(|what| StoreError::Corrupt { page, what })?;
                match self.store.shared {
                    None => sum,
                    Some(_) => bound_sum(sum, page),
                }
            }
        };
        self.compare(sum, page, bytes)
    }

    #[inline(always)]
    fn compare(&self, stored: u32, page: u64, bytes: &Page) -> Result<(), StoreError> {
        if !self.store.settings.verify {
            return Ok(());
        }
        let computed = bound_sum(crc32c(bytes), page);
        if computed == stored {
            return Ok(());
        }
        Err(StoreError::Corrupt {
            page,
            what: Damage::Checksum { computed, stored },
        })
    }

    #[inline(always)]
    fn unpack(&mut self, packing: Packing, form: &[u8], bytes: &mut Page) -> Result<(), Damage> {
        match packing {
            Packing::Lz4 => lz4::decode(form, bytes)?,
            Packing::Zstd => self.decoder.decode(form, bytes)?,
            Packing::Word => {
                let wrong = |_| Damage::Word { len: form.len() };
                repeat::fill(bytes, u64::from_le_bytes(form.try_into().map_err(wrong)?));
            }
        }
        Ok(())
    }
}

/// What a page is stored as, before there is a slot for it. Sums are of the page alone.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// So many bytes of the lane's block.
    Packed {
        packing: Packing,
        len: usize,
        sum: u32,
    },
    /// The page as it is.
    Raw { sum: u32 },
}

impl Form {
    /// Bytes that it needs of a slot.
    pub(super) fn stored_bytes(&self) -> usize {
        match self {
            Self::Packed { len, .. } => len + SUM_BYTES,
            Self::Raw { .. } => PAGE_BYTES,
        }
    }
}

/// CRC32C of a page of zeros: by far the most frequent page, and worth 4096 bytes of checksum.
pub const ZERO_PAGE_SUM: u32 = 0x98f9_4189;

impl Store {
    /// Asks for the bytes of a page that will be read soon; a hint, so the lock is not taken.
    #[inline(always)]
    fn prefetch(&self, page: u64) {
        let word = self
            .memory
            .entry(page)
            .load(std::sync::atomic::Ordering::Relaxed);
        if let Some(found) = Entry::unpack(word & !LOCKED)
            && let Some((at, len)) = extent(found.stored)
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
