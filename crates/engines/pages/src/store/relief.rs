//! What a write does before it is refused for want of space: it moves pages together, writes idle
//! ones back to the file, and at last overwrites the page's own slot. Has `unsafe`: writes to slots
//! that no entry points at.
//!
//! Each step is taken only where it can win something, so that a store that is full of pages that
//! nothing can move refuses a write about as fast as it takes one.

use std::sync::atomic::Ordering::{Relaxed, Release};

use dyno_codec::lz4::Page;

use super::file::WriteBack;
use super::handle::{Form, Handle};
use super::shared::content_of;
use super::slot_access::{SUM_BYTES, bound_sum, extent};
use crate::PAGE_BYTES;
use crate::error::StoreError;
use crate::index::entry::{AGE_MAX, Entry, Stored, UNIT_BYTES};
use crate::index::lock::LOCKED;

/// Pages that a write without space writes back at a time: 1 MiB.
const WRITTEN_BACK: u64 = 256;
/// Rounds of writing back for one write. What leaves memory may free slots of other sizes, until
/// enough of them are free for a span.
const ROUNDS: u32 = 16;
/// How often one write has pages moved together, or waits while another thread does it. Another
/// thread may take what the first attempt wins.
const ATTEMPTS: u32 = 16;

impl Handle<'_> {
    /// Writes a page for which there was no slot.
    #[cold]
    pub(super) fn write_when_full(&mut self, page: u64, bytes: &Page) -> Result<(), StoreError> {
        let store = self.store();
        let mut rounds = 0;
        loop {
            // Moving comes before writing back, because it keeps pages in memory, and after it
            // again, because it turns the freed slots into spans.
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

    /// Tries the write again after pages were moved together, as often as that changes anything;
    /// `None` if there is still no slot.
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

    /// Tries the write once more; `None` if there is still no slot.
    fn tried(&mut self, page: u64, bytes: &Page) -> Option<Result<(), StoreError>> {
        match self.write_if_space(page, bytes) {
            Err(StoreError::NoSpace { .. }) => None,
            done => Some(done),
        }
    }

    /// Writes pages back to the file, those first that were not touched for longest. Returns false
    /// if none was moved, because there is no file, it is full, or it fails.
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
            // The search goes on where the last write left off, because what lies before has left
            // already.
            for from in [store.relief_page.load(Relaxed), 0] {
                match self.write_back(from, WRITTEN_BACK, which) {
                    Ok(done) => {
                        store.relief_page.store(done.next_page, Relaxed);
                        if done.pages > 0 {
                            return Ok(true);
                        }
                    }
                    // The store has counted the failure; the write is refused for want of memory,
                    // which is what the caller can act on.
                    Err(StoreError::File(_)) => return Ok(false),
                    Err(other) => return Err(other),
                }
            }
        }
        Ok(false)
    }

    /// Overwrites a page in the slot that it has, if the new form is no longer than that slot.
    ///
    /// A slot is never written to while an entry points at it, as a kill in the middle would leave
    /// half of each page. So the new form goes into a slot of the reserve first; the entry points
    /// at that while the old slot, which no entry points at for the moment, is filled; then the
    /// entry points at the old slot again. All of this happens under the entry's lock. After a kill
    /// at any instant the store has the old page, or the new one in the reserve or in the slot.
    fn overwrite(&mut self, page: u64, bytes: &Page) -> Result<(), StoreError> {
        let store = self.store();
        let form = self.encode(bytes);
        let word = store.lock(page, self.mark())?;
        let outcome = Entry::unpack(word)
            // A damaged entry may point at the slot of another page, or outside the arena.
            .filter(|old| store.is_own(old.stored, page))
            .and_then(|old| extent(old.stored))
            .filter(|extent| self.fits(&form, extent.at))
            .and_then(|extent| self.overwrite_locked(page, &form, bytes, extent.at));
        let new = outcome.map_or(word, |(stored, _)| Entry::fresh(stored).pack());
        store.unlock(page, new, self.mark());
        let Some((stored, reserve)) = outcome else {
            return Err(store.no_space(form.stored_bytes()));
        };
        // The reserve is freed only now, because the entry points at it until it is unlocked.
        store.slots.free_reserve(reserve);
        store.note_overwritten(&form, stored);
        Ok(())
    }

    /// Whether the slot at `at` can hold a form. A page that is stored as it is lies at a multiple
    /// of a page, as only slots of whole pages do.
    fn fits(&self, form: &Form, at: usize) -> bool {
        let slots = &self.store().slots;
        let class = slots.class_of(at);
        match form {
            Form::Raw { .. } => class == slots.classes().whole_page(),
            Form::Packed { .. } => slots.classes().bytes(class) >= form.stored_bytes(),
        }
    }

    /// Fills the slot at `at` by way of the reserve, and returns the new form with the slot of the
    /// reserve, for the caller to free. `None` if the reserve is in use, or other pages share the
    /// slot.
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
        // The store with release order makes the whole form visible before the entry that points at
        // it.
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
                // SAFETY: the callers guarantee it.
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
                // SAFETY: the callers guarantee it.
                unsafe { memory.write(at, bytes) };
                Stored::Raw {
                    place: (at / PAGE_BYTES) as u32,
                    sum: bound_sum(sum, page),
                }
            }
        }
    }
}
