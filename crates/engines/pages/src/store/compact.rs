//! Compaction: what a class holds is moved into as few spans as it fits, and memory that is free goes
//! back to the system.

use super::Store;
use super::place::extent;
use crate::arena::classes::{Class, SPAN_BYTES};
use crate::error::StoreError;
use crate::index::entry::{Entry, Stored, UNIT_BYTES};
use crate::index::lock::{LOCKED, Mark};

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Pages that were moved.
    pub moved: u64,
    /// Spans that became free.
    pub freed_spans: u64,
    /// Bytes of memory that went back to the system, or would have, had it still held them: spans
    /// that are free, and the empty pages of spans that are not full.
    pub given_back_bytes: u64,
}

impl Store {
    /// Empties up to `most_spans` spans of each class into others, the emptiest first, and gives free
    /// memory back. Afterwards, with nobody writing meanwhile and no bound met, a class holds less
    /// than one span of free slots. Others may read and write meanwhile; a page waits while it is
    /// moved.
    ///
    /// # Errors
    /// When the system does not take memory back.
    pub fn compact(&self, most_spans: usize) -> Result<Compacted, StoreError> {
        let mut done = self.move_together(most_spans);
        let spans = self
            .slots
            .trim(|span| self.give_back(span as usize * SPAN_BYTES, SPAN_BYTES))?;
        let mut bytes = spans * SPAN_BYTES;
        for class in 0..self.slots.classes().count() as Class {
            let give_back = |at, len| self.give_back(at, len);
            bytes += self.slots.trim_open(class, most_spans, give_back)?;
        }
        done.given_back_bytes = bytes as u64;
        if let Some(shared) = &self.shared {
            shared.shrink();
        }
        if let Some(backing) = &self.backing {
            backing.trim();
        }
        Ok(done)
    }

    /// Empties up to `most_spans` spans of each class into others, the emptiest first.
    pub(super) fn move_together(&self, most_spans: usize) -> Compacted {
        let mut done = Compacted::default();
        let mut closed = Vec::new();
        for class in 0..self.slots.classes().count() as Class {
            self.slots.close_emptiest(class, most_spans, &mut closed);
        }
        if !closed.is_empty() {
            let mark = self.holders.mark();
            for page in self.touched_from(0) {
                done.moved += u64::from(self.move_page(page, &mark));
            }
        }
        for span in closed {
            done.freed_spans += u64::from(self.slots.reopen(span));
        }
        done
    }

    /// Moves a page out of a closed span. It stays when there is no other slot, or when another thread is
    /// at it.
    fn move_page(&self, page: u64, mark: &Mark) -> bool {
        let closed = |word: u64| {
            let found = Entry::unpack(word & !LOCKED)?;
            let (at, len) = extent(found.stored)?;
            let span = u32::try_from(at / SPAN_BYTES).ok()?;
            let inside = span < self.memory.layout().spans;
            (inside && self.slots.is_draining(span)).then_some((found, at, len))
        };
        if closed(self.peek(page)).is_none() {
            return false;
        }
        let Some(word) = self.try_lock(page, mark) else {
            return false;
        };
        let moved = closed(word).and_then(|(found, at, len)| {
            let stored = self.copy_to_other_slot(found.stored, at, len)?;
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

    /// Whether an entry must go on pointing at `old`, as others do: `new`, its copy, is free again then.
    pub(super) fn stays(&self, old: Stored, new: Stored) -> bool {
        let stays = self
            .shared
            .as_ref()
            .is_some_and(|shared| !shared.moved(old, new));
        if let (true, Some((at, _))) = (stays, extent(new)) {
            self.slots.free(at);
        }
        stays
    }

    fn copy_to_other_slot(&self, stored: Stored, at: usize, len: usize) -> Option<Stored> {
        let class = self.slots.class_of(at);
        let slot = self.slots.take_of(class, None::<&fn(u32, Class)>)?;
        self.copy_slot(at, len, slot.at);
        Some(match stored {
            Stored::Raw { sum, .. } => Stored::Raw {
                place: (slot.at / crate::PAGE_BYTES) as u32,
                sum,
            },
            Stored::Packed { packing, len, .. } => Stored::Packed {
                packing,
                len,
                place: slot.at as u64 / UNIT_BYTES,
            },
            other => other,
        })
    }
}
