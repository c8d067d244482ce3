//! What a write does before it is refused for want of space: it moves pages together, writes idle
//! ones back to the file, and at last overwrites the page's own slot. Has `unsafe`: writes to slots
//! that no entry points at.
//!
//! Each step is taken only where it can win something, so that a store that is full of pages that
//! nothing can move refuses a write about as fast as it takes one.

use std::sync::atomic::Ordering::{Relaxed, Release};

use dyno_codec::lz4::Page;

use super::file::WriteBack;
use super::lane::{Form, Lane};
use super::place::{SUM_BYTES, bound_sum, extent};
use super::shared::content_of;
use crate::PAGE_BYTES;
use crate::error::StoreError;
use crate::index::entry::{AGE_MAX, Entry, Stored, UNIT_BYTES};
use crate::index::lock::LOCKED;

/// Pages written back at a time by a write that found no space: 1 MiB.
const WRITTEN_BACK: u64 = 256;
/// Rounds of writing back for one write. What leaves memory may leave slots of other sizes free,
/// until enough of them are free for a span.
const ROUNDS: u32 = 16;
/// Times that one write has pages moved together, or waits while another thread does it. Another
/// thread may take what the first time wins.
const ATTEMPTS: u32 = 16;

impl Lane<'_> {
    /// Writes a page for which there was no slot.
    #[cold]
    pub(super) fn write_when_full(&mut self, page: u64, bytes: &Page) -> Result<(), StoreError> {
        let store = self.store();
        let mut rounds = 0;
        loop {
            // Writing back frees slots, which moving pages together makes spans of.
            if let Some(done) = self.consolidated(page, bytes) {
                return done;
            }
            if rounds == ROUNDS || !self.write_some_back()? {
                break;
            }
            rounds += 1;
            store.consolidate_anew();
            if let Some(done) = self.tried(page, bytes) {
                return done;
            }
        }
        let done = self.overwrite(page, bytes);
        if matches!(done, Err(StoreError::NoSpace { .. })) {
            store.refused.fetch_add(1, Relaxed);
        }
        done
    }

    /// The write once more, after pages were moved together as often as that changes anything;
    /// nothing when there is still no slot.
    fn consolidated(&mut self, page: u64, bytes: &Page) -> Option<Result<(), StoreError>> {
        let store = self.store();
        for _ in 0..ATTEMPTS {
            if !store.consolidate() {
                return None;
            }
            if let Some(done) = self.tried(page, bytes) {
                return Some(done);
            }
        }
        None
    }

    /// The write once more; nothing when there is still no slot.
    fn tried(&mut self, page: u64, bytes: &Page) -> Option<Result<(), StoreError>> {
        match self.write_if_space(page, bytes) {
            Err(StoreError::NoSpace { .. }) => None,
            done => Some(done),
        }
    }

    /// Moves pages to the file, those first that were not touched for longest. False: nothing
    /// moved, because there is no file, it is full, or it fails.
    fn write_some_back(&mut self) -> Result<bool, StoreError> {
        let store = self.store();
        if store.backing.is_none() {
            return Ok(false);
        }
        for age in (0..=AGE_MAX).rev() {
            let which = WriteBack {
                packed: Some(age),
                raw: Some(age),
            };
            // From where the last write left off: what is before that place has left already.
            for from in [store.relief_page.load(Relaxed), 0] {
                match self.write_back(from, WRITTEN_BACK, which) {
                    Ok(done) => {
                        store.relief_page.store(done.next_page, Relaxed);
                        if done.pages > 0 {
                            return Ok(true);
                        }
                    }
                    // The store counts it; the write is refused for want of memory.
                    Err(StoreError::File(_)) => return Ok(false),
                    Err(other) => return Err(other),
                }
            }
        }
        Ok(false)
    }

    /// Puts a page into the slot that it has, when the new form is no longer than that.
    ///
    /// A slot is never written to while an entry points at it, as a kill in the middle would leave
    /// half of each page. So the new form goes into a slot of the reserve first; the entry points
    /// at that while the old slot, which no entry points at for the moment, is filled; then the
    /// entry points at the old slot again. All of it happens under the entry's lock. After a kill
    /// at any instant there is the old page, or the new one in the reserve or in the slot.
    fn overwrite(&mut self, page: u64, bytes: &Page) -> Result<(), StoreError> {
        let store = self.store();
        let form = self.encode(bytes);
        let word = store.lock(page, self.mark())?;
        let outcome = Entry::unpack(word)
            .and_then(|old| extent(old.stored))
            .filter(|&(at, _)| self.fits(&form, at))
            .and_then(|(at, _)| self.overwrite_locked(page, &form, bytes, at));
        let new = outcome.map_or(word, |(stored, _)| Entry::fresh(stored).pack());
        store.unlock(page, new, self.mark());
        let Some((stored, reserve)) = outcome else {
            return Err(store.no_space(form.stored_bytes()));
        };
        // Not before: until the entry is unlocked it points at the reserve.
        store.slots.free_reserve(reserve);
        store.note_overwritten(&form, stored);
        Ok(())
    }

    /// Whether the slot at `at` can hold a form. A whole page lies at a multiple of a page, as only
    /// slots of whole pages do.
    fn fits(&self, form: &Form, at: usize) -> bool {
        let slots = &self.store().slots;
        let class = slots.class_of(at);
        match form {
            Form::Raw { .. } => class == slots.classes().of_pages(),
            Form::Packed { .. } => slots.classes().bytes(class) >= form.stored_bytes(),
        }
    }

    /// Nothing when the reserve is in use by others, or when other pages share the slot. Returns
    /// the slot of the reserve too, for the caller to free.
    fn overwrite_locked(
        &self,
        page: u64,
        form: &Form,
        bytes: &Page,
        at: usize,
    ) -> Option<(Stored, usize)> {
        let store = self.store();
        let reserve = store.slots.take_reserve()?;
        if let Some(shared) = &store.shared
            && !shared.leave_alone(at)
        {
            store.slots.free_reserve(reserve);
            return None;
        }
        let in_reserve = self.fill(form, bytes, page, reserve);
        let word = Entry::fresh(in_reserve).pack() | LOCKED;
        store.memory.entry(page).store(word, Release);
        let stored = self.fill(form, bytes, page, at);
        if let Some(shared) = &store.shared {
            shared.add(content_of(bytes), stored);
        }
        Some((stored, reserve))
    }

    /// Writes a form to a slot that is long enough and that no entry points at.
    fn fill(&self, form: &Form, bytes: &Page, page: u64, at: usize) -> Stored {
        let memory = &self.store().memory;
        match *form {
            Form::Packed { packing, len, sum } => {
                let sum = self.store().slot_sum(sum, page);
                // SAFETY: the callers' word.
                unsafe {
                    memory.write(at, &sum.to_le_bytes());
                    memory.write(at + SUM_BYTES, self.packed(len));
                }
                Stored::Packed {
                    packing,
                    len: len as u16,
                    place: at as u64 / UNIT_BYTES,
                }
            }
            Form::Raw { sum } => {
                // SAFETY: the callers' word.
                unsafe { memory.write(at, bytes) };
                Stored::Raw {
                    place: (at / PAGE_BYTES) as u32,
                    sum: bound_sum(sum, page),
                }
            }
        }
    }
}
