//! Pages of the second tier that were read again soon after they were read. They are not idle, and
//! the next pass of the second tier packs them with LZ4 again, so that a wrong guess costs a few
//! slow reads. A read itself never does that: it would have to find a slot.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::handle::Form;
use super::recompress::Recompressor;
use crate::arena::classes::SPAN_BYTES;
use crate::error::StoreError;
use crate::index::entry::{Entry, Packing, Stored};

/// Pages that can be noted between two passes.
const PLACES: usize = 1024;
/// Says that no page is noted: no page has this number.
const NONE: u64 = u64::MAX;
/// Pages go back to LZ4 only while at most this many eighths of the memory are in use. In a fuller
/// store they keep their shorter form, because the longer slots that LZ4 takes would soon be
/// missing for writes, which would be refused.
const MOST_USED: u64 = 6;

/// The numbers of pages that readers have noted. A page that finds its place taken replaces the
/// other one, which the next read of that will note again: this is a hint.
#[derive(Debug)]
pub struct Reread(Box<[AtomicU64]>);

impl Default for Reread {
    fn default() -> Self {
        Self((0..PLACES).map(|_| AtomicU64::new(NONE)).collect())
    }
}

impl Reread {
    #[inline(always)]
    pub fn note(&self, page: u64) {
        self.0[page as usize % PLACES].store(page, Relaxed);
    }

    /// Removes the pages that were noted, one at a time.
    fn drain(&self) -> impl Iterator<Item = u64> + '_ {
        let taken = self.0.iter().map(|place| match place.load(Relaxed) {
            NONE => NONE,
            // Most places are empty, and are not written to.
            _ => place.swap(NONE, Relaxed),
        });
        taken.filter(|&page| page != NONE)
    }

    /// Bytes of memory that the places take.
    pub fn overhead_bytes(&self) -> u64 {
        (PLACES * size_of::<AtomicU64>()) as u64
    }
}

impl Recompressor<'_> {
    /// Packs the noted pages with LZ4 again, until `spent` returns true. Returns how many.
    ///
    /// # Errors
    /// Those of [`Recompressor::pass`].
    pub(super) fn unpack_reread(&mut self, spent: impl Fn() -> bool) -> Result<u64, StoreError> {
        let store = self.handle.store();
        let mut done = 0;
        for page in store.reread.drain() {
            let all = u64::from(store.memory.layout().spans) * SPAN_BYTES as u64;
            if spent() || store.slots.used_bytes() > all / 8 * MOST_USED {
                break;
            }
            // A page that is in use just now is noted again by its next reader.
            let Some(word) = store.try_lock(page, self.handle.mark()) else {
                continue;
            };
            let found = Entry::unpack(word).filter(|found| found.was_wrongly_idle());
            let outcome = found.map_or(Ok(None), |old| self.unpack(page, old.stored));
            let new = match outcome {
                Ok(Some(stored)) => Entry::fresh(stored).pack(),
                Ok(None) | Err(_) => word,
            };
            store.unlock(page, new, self.handle.mark());
            match (outcome, found) {
                (Ok(Some(_)), Some(old)) => {
                    done += 1;
                    store.free_slot(old.stored);
                }
                (Err(error @ StoreError::Corrupt { .. }), _) => store.note_damage(&error),
                (Err(other), _) => return Err(other),
                (Ok(_), _) => {}
            }
        }
        Ok(done)
    }

    /// Packs a page with LZ4 into a slot of its own; `None` if there is no slot, LZ4 makes it no
    /// shorter, or other pages share the slot that it has. The caller holds the entry's lock.
    fn unpack(&mut self, page: u64, old: Stored) -> Result<Option<Stored>, StoreError> {
        let store = self.handle.store();
        self.handle.fetch_verified(old, page, &mut self.page)?;
        let Form::Packed {
            packing: packing @ Packing::Lz4,
            len,
            sum,
        } = self.handle.encode(&self.page)
        else {
            return Ok(None);
        };
        let sum = store.slot_sum(sum, page);
        match store.store_packed(packing, self.handle.packed(len), sum) {
            Ok(stored) => Ok((!store.stays(old, stored)).then_some(stored)),
            Err(StoreError::NoSpace { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}
