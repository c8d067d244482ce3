//! Compaction moves what a class holds into as few spans as possible, and gives free memory back to
//! the system.

use std::ops::Range;

use super::Store;
use super::slot_access::{Extent, extent};
use crate::PAGE_BYTES;
use crate::arena::classes::{Class, SPAN_BYTES};
use crate::arena::slots::Target;
use crate::error::StoreError;
use crate::heap;
use crate::index::entry::{Entry, Stored, UNIT_BYTES};
use crate::index::lock::{LOCKED, Mark};

/// What one compaction has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Pages that were copied to another slot.
    pub moved: u64,
    /// Spans that became free because all their pages moved away.
    pub freed_spans: u64,
    /// Bytes of memory that went back to the system: spans that are free, and the empty pages of
    /// spans that are not full. Those that the system had already taken back count as well.
    pub given_back_bytes: u64,
}

impl Compacted {
    pub(super) fn changed(self) -> bool {
        self.moved > 0 || self.freed_spans > 0
    }
}

impl Store {
    /// Empties up to `most_spans` spans of each class into others, the emptiest first, and gives
    /// free memory back. Afterwards, with no thread writing meanwhile and no bound met, a class
    /// holds less than one span of free slots. Others may read and write meanwhile; a page waits
    /// while it is moved.
    ///
    /// # Errors
    /// When the system does not take memory back.
    pub fn compact(&self, most_spans: usize) -> Result<Compacted, StoreError> {
        // Moving comes first, because it makes the free spans that are given back below.
        let mut done = self.alone(|| self.move_together(most_spans, Target::SameClass));
        let spans = self
            .slots
            .trim(|span| self.give_back(span as usize * SPAN_BYTES, SPAN_BYTES))?;
        let mut bytes = spans * SPAN_BYTES;
        for class in 0..self.slots.classes().count() as Class {
            let give_back = |at, len| self.give_back(at, len);
            bytes += self.slots.trim_open(class, most_spans, give_back)?;
        }
        done.given_back_bytes = bytes as u64;
        // The allocator would keep what the maps gave it.
        if self.shared.as_ref().is_some_and(|shared| shared.shrink()) {
            heap::give_back();
        }
        // The backing file is trimmed here and not in each free, because one call for a run of
        // pages costs the file system as much as one for a single page.
        if let Some(backing) = &self.backing {
            backing.trim();
        }
        Ok(done)
    }

    /// Empties up to `most_spans` spans of each class into others that `target` allows, the
    /// emptiest first. With a target other than the same class it also moves pages that lie in
    /// longer slots than they need to free slots that fit better.
    ///
    /// Longer slots are for a store that is short of memory. Each class has a span that is partly
    /// filled, so all hundred classes together have 50 spans' worth of free slots that pages of
    /// other lengths cannot use: more than a small store has to spare.
    pub(super) fn move_together(&self, most_spans: usize, target: Target) -> Compacted {
        let closed = self.slots.close_emptiest(most_spans, target);
        if closed.is_empty() && target == Target::SameClass {
            return Compacted::default();
        }
        self.move_pages(closed, target)
    }

    /// Moves every page that `target` has another slot for, and opens the `closed` spans again.
    pub(super) fn move_pages(&self, closed: Vec<u32>, target: Target) -> Compacted {
        let mut done = Compacted::default();
        let mark = self.holders.mark();
        for page in self.touched_from(0) {
            done.moved += u64::from(self.move_page(page, &mark, target));
        }
        // A span whose pages could not all move opens again: a page may have been locked, or found
        // no slot.
        for span in closed {
            done.freed_spans += u64::from(self.slots.reopen(span));
        }
        done
    }

    /// Moves a page to a slot that `target` allows. The page stays if there is no such slot, its
    /// entry is damaged and points at another page, or another thread has it locked.
    fn move_page(&self, page: u64, mark: &Mark, target: Target) -> bool {
        let moves = |word: u64| {
            let found = Entry::unpack(word & !LOCKED)?;
            let Extent { at, len } = self.extent_of(found.stored, page).ok()?;
            let classes = self.classes_to_move_to(found.stored, at, len, target);
            (!classes.is_empty()).then_some((found, at, len, classes))
        };
        // The first look is without the lock, as most pages stay; the entry may change until the
        // lock is taken, so the same question is asked again under it.
        if moves(self.peek(page)).is_none() {
            return false;
        }
        let Some(word) = self.try_lock(page, mark) else {
            return false;
        };
        let moved = moves(word).and_then(|(found, at, len, classes)| {
            if !self.is_own(found.stored, page) {
                return None;
            }
            let slot = self.slots.allocate_shortest(classes)?;
            // The copy is complete before the entry points at it, and the old slot is freed only
            // after the entry is unlocked: a kill in between leaves one whole page and an unused
            // slot.
            self.copy_slot(at, len, slot.at);
            let stored = in_slot(found.stored, slot.at);
            if self.stays(found.stored, stored) {
                return None;
            }
            Some((Entry { stored, ..found }, at))
        });
        self.unlock(page, moved.map_or(word, |(new, _)| new.pack()), mark);
        if let Some((_, at)) = moved {
            self.slots.free(at);
        }
        moved.is_some()
    }

    /// The classes that a page may move to: for a page in a closed span those that hold it, for any
    /// other page those whose slots are shorter than the one it has.
    fn classes_to_move_to(
        &self,
        stored: Stored,
        at: usize,
        len: usize,
        target: Target,
    ) -> Range<Class> {
        let classes = self.slots.classes();
        let has = self.slots.class_of(at);
        // A page that is stored as it is must lie at a multiple of a page, and only slots of whole
        // pages do.
        let fits = match (target, stored) {
            (Target::SameClass, _) => has,
            (_, Stored::Raw { .. }) => classes.whole_page(),
            _ => classes.for_bytes(len),
        };
        if self.slots.is_draining((at / SPAN_BYTES) as u32) {
            fits..self.slots.within(has, target).end
        } else {
            fits..has
        }
    }

    /// Whether an entry must go on pointing at `old` because other entries share that slot. If so,
    /// `new`, the copy, is freed here.
    pub(super) fn stays(&self, old: Stored, new: Stored) -> bool {
        let stays = self
            .shared
            .as_ref()
            .is_some_and(|shared| !shared.moved(old, new));
        if let (true, Some(Extent { at, .. })) = (stays, extent(new)) {
            self.slots.free(at);
        }
        stays
    }
}

/// The same form at another position in the arena.
fn in_slot(stored: Stored, at: usize) -> Stored {
    match stored {
        Stored::Raw { sum, .. } => Stored::Raw {
            place: (at / PAGE_BYTES) as u32,
            sum,
        },
        Stored::Packed { packing, len, .. } => Stored::Packed {
            packing,
            len,
            place: at as u64 / UNIT_BYTES,
        },
        other => other,
    }
}
