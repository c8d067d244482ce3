//! The second tier: packs pages that are not touched any more again, with zstd until the store has
//! a dictionary and with that from then on.

use std::time::Duration;

use dyno_checksum::crc32c;
use dyno_codec::lz4::{BLOCK_BOUND, Block, Page};
use dyno_codec::{dictionary, zstd};

use super::Store;
use super::handle::Handle;
use super::slot_access::{Extent, SUM_BYTES, extent};
use crate::PAGE_BYTES;
use crate::error::StoreError;
use crate::heap;
use crate::index::entry::{AGE_MAX, Entry, Packing, Stored};
use crate::index::lock::LOCKED;

/// What one pass of recompression has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recompressed {
    /// Pages that take a shorter slot now.
    pub packed: u64,
    /// Pages that zstd made no shorter. They are not tried again until they are written.
    pub stubborn: u64,
    /// Damaged pages that were met. They stay as they are, and are not tried again until they are
    /// written.
    pub damaged: u64,
    /// Bytes of slots that the pass made free by packing pages.
    pub won_bytes: u64,
    /// Pages that were packed and turned out not to be idle, and that LZ4 packs again now.
    pub unpacked: u64,
    /// The page from which the next pass goes on; 0 if this one met the end.
    pub next_page: u64,
}

/// The working memory of the second tier, for one thread.
#[derive(Debug)]
pub struct Recompressor<'a> {
    pub(super) handle: Handle<'a>,
    encoder: zstd::Encoder,
    /// Made for the first page that is packed with the store's dictionary, and kept until
    /// [`Self::release`].
    trained: Option<dictionary::Encoder>,
    pub(super) page: Box<Page>,
    pub(super) block: Box<Block>,
}

/// zstd's level for pages. On the first machine measured, level 1 halved a heap against LZ4 and
/// level 3 won little more in twice the time; the suite `pages` measures both anew.
pub const LEVEL: i32 = 1;

impl Store {
    /// Counts one more pass without a touch for every page. A page that is read or written begins
    /// at 0 again.
    pub fn age(&self) {
        let mark = self.holders.mark();
        let old =
            |word| Entry::unpack(word).filter(|e| e.age < AGE_MAX && e.stored != Stored::Empty);
        for page in self.touched_from(0) {
            if old(self.peek(page)).is_none() {
                continue;
            }
            // A page that another thread has locked is in use, and does not age.
            let Some(word) = self.try_lock(page, &mark) else {
                continue;
            };
            let older = |e: Entry| Entry {
                age: e.age + 1,
                ..e
            };
            self.unlock(page, old(word).map_or(word, |e| older(e).pack()), &mark);
        }
    }

    /// The entry of a page as it is now, without taking its lock: a hint, which must be checked
    /// again under the lock before anything is done with it.
    pub(super) fn peek(&self, page: u64) -> u64 {
        self.memory
            .entry(page)
            .load(std::sync::atomic::Ordering::Relaxed)
            & !LOCKED
    }

    /// Makes the working memory of the second tier.
    ///
    /// # Errors
    /// When there is no memory for its contexts.
    pub fn recompressor(&self) -> Result<Recompressor<'_>, StoreError> {
        let mut made = Recompressor {
            handle: self.handle()?,
            encoder: zstd::Encoder::new(self.settings.level)?,
            trained: None,
            page: Box::new([0; PAGE_BYTES]),
            block: Box::new([0; BLOCK_BOUND]),
        };
        made.prepare()?;
        // The library allocates with the first page, and a store that serves swap must not allocate
        // later.
        let _length = made
            .encoder
            .encode(&made.page, &mut made.block, BLOCK_BOUND);
        Ok(made)
    }
}

impl Recompressor<'_> {
    /// Packs again the pages from `from_page` on that were not touched for `idle` passes of
    /// [`Store::age`], until `clock`, the processor time of this thread, has advanced by `budget`
    /// or the last page is done. A reader of a page that is being packed waits for some 30
    /// microseconds.
    ///
    /// # Errors
    /// If the file fails, or there is no memory. A damaged page is not an error: it is noted, and
    /// the pass goes on behind it.
    pub fn pass(
        &mut self,
        from_page: u64,
        idle: u8,
        budget: Duration,
        clock: impl Fn() -> Duration,
    ) -> Result<Recompressed, StoreError> {
        let store = self.handle.store();
        let mut done = Recompressed::default();
        let start = clock();
        let spent = || clock().saturating_sub(start) >= budget;
        done.unpacked = self.unpack_reread(spent)?;
        let packing = match store.dictionary.get() {
            Some(_) => Packing::Dictionary,
            None => Packing::Zstd,
        };
        let candidate = |word| candidate(word, idle, packing);
        for page in store.touched_from(from_page) {
            if candidate(store.peek(page)).is_none() {
                continue;
            }
            // The clock is read for candidates alone: it is a system call, and most pages are not
            // idle.
            if spent() {
                done.next_page = page;
                return Ok(done);
            }
            // Before the page is locked, as it takes a millisecond the first time.
            self.prepare()?;
            let Some(word) = store.try_lock(page, self.handle.mark()) else {
                continue;
            };
            let Some(old) = candidate(word) else {
                store.unlock(page, word, self.handle.mark());
                continue;
            };
            let outcome = self.pack(page, old);
            let new = match &outcome {
                Ok(Some((stored, _))) => Entry {
                    stored: *stored,
                    ..old
                }
                .pack(),
                // A damaged page stays where it is, so that reading it is still refused; only the
                // bit changes that says it was tried.
                Ok(None) | Err(StoreError::Corrupt { .. }) => Entry {
                    stubborn: true,
                    ..old
                }
                .pack(),
                Err(_) => word,
            };
            store.unlock(page, new, self.handle.mark());
            match outcome {
                Ok(Some((_, won_bytes))) => {
                    done.packed += 1;
                    done.won_bytes += won_bytes;
                    store.free_slot(old.stored);
                }
                Ok(None) => done.stubborn += 1,
                Err(error @ StoreError::Corrupt { .. }) => {
                    store.note_damage(&error);
                    done.damaged += 1;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(done)
    }

    /// Frees what packing with the dictionary takes, about 1.4 MB. The next page that is packed
    /// makes it again, so a store that must not allocate does not call this.
    pub fn release(&mut self) {
        if self.trained.take().is_some() {
            heap::give_back();
        }
    }

    /// Makes the encoder for the store's dictionary, if there is one.
    fn prepare(&mut self) -> Result<(), StoreError> {
        let store = self.handle.store();
        if self.trained.is_none()
            && let Some(dictionary) = store.dictionary.get()
        {
            let level = store.settings.level;
            self.trained = Some(dictionary::Encoder::new(dictionary.bytes(), level)?);
        }
        Ok(())
    }

    /// What the pages that it packs become.
    fn packing(&self) -> Packing {
        match self.trained {
            Some(_) => Packing::Dictionary,
            None => Packing::Zstd,
        }
    }

    /// Packs the page into a shorter slot of its own, or returns `None` if that does not pay. The
    /// bytes are compared with the sum that was stored when they were written, so the sum of the
    /// new form is that of bytes known to be right. With the new form come the bytes of slots that
    /// it wins, which only the lock of the entry keeps from changing. The caller holds that lock.
    fn pack(&mut self, page: u64, old: Entry) -> Result<Option<(Stored, u64)>, StoreError> {
        let store = self.handle.store();
        self.handle
            .fetch_verified(old.stored, page, &mut self.page)?;
        // Only behind that: the place of a damaged entry may lie outside the arena.
        let has = store.slot_bytes(old.stored) as usize;
        // Only a slot of a shorter class is worth the copy.
        let limit = has - SUM_BYTES - 1;
        let len = match &mut self.trained {
            Some(trained) => trained.encode(&self.page, &mut self.block, limit),
            None => self.encoder.encode(&self.page, &mut self.block, limit),
        };
        let Some(len) = len else {
            return Ok(None);
        };
        let classes = store.slots.classes();
        if classes.bytes(classes.for_bytes(len + SUM_BYTES)) >= has {
            return Ok(None);
        }
        let sum = store.slot_sum(crc32c(self.page.as_slice()), page);
        match store.store_packed(self.packing(), &self.block[..len], sum) {
            Ok(stored) if store.slot_bytes(stored) < has as u64 => {
                let won_bytes = has as u64 - store.slot_bytes(stored);
                let stays = store.stays(old.stored, stored);
                Ok((!stays).then_some((stored, won_bytes)))
            }
            Ok(stored) => {
                // The right class has no free slot, and a longer one wins nothing.
                store.free_slot(stored);
                Ok(None)
            }
            Err(StoreError::NoSpace { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}

impl Store {
    /// Frees the slot of a form that no entry points at and that no other thread knows.
    pub(super) fn free_slot(&self, stored: Stored) {
        if let Some(Extent { at, .. }) = extent(stored) {
            self.slots.free(at);
        }
    }

    /// Bytes of the slot that a form takes, the rounding included.
    pub(super) fn slot_bytes(&self, stored: Stored) -> u64 {
        extent(stored).map_or(0, |Extent { at, .. }| {
            self.slots.classes().bytes(self.slots.class_of(at)) as u64
        })
    }
}

/// The entry, if it is of an idle page that `packing` may make shorter: one of the first tier, or
/// one that was packed before there was a dictionary.
fn candidate(word: u64, idle: u8, packing: Packing) -> Option<Entry> {
    let found = Entry::unpack(word)?;
    let may_win = match found.stored {
        Stored::Raw { .. } => true,
        Stored::Packed { packing: has, .. } => {
            has == Packing::Lz4 || (has == Packing::Zstd && packing == Packing::Dictionary)
        }
        Stored::Empty | Stored::Fill { .. } | Stored::File { .. } => false,
    };
    (may_win && !found.stubborn && found.age >= idle).then_some(found)
}
