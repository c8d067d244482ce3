//! Moves stored forms in and out of slots. Has `unsafe`: slots as slices, under the lock of their
//! entry.

use dyno_checksum::crc32c;
use dyno_codec::lz4::Page;

use super::Store;
use crate::PAGE_BYTES;
use crate::arena::classes::SPAN_BYTES;
use crate::arena::slots::Slot;
use crate::error::{Damage, StoreError};
use crate::index::entry::{Entry, Packing, Stored, UNIT_BYTES};

/// Bytes of the checksum in front of a packed page.
pub const SUM_BYTES: usize = 4;

/// The bytes of the arena that a form takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the arena.
    pub at: usize,
    /// Length in bytes, the checksum included.
    pub len: usize,
}

/// Where in the arena a form lies; `None` for a form without a slot.
pub fn extent(stored: Stored) -> Option<Extent> {
    match stored {
        Stored::Raw { place, .. } => Some(Extent {
            at: place as usize * PAGE_BYTES,
            len: PAGE_BYTES,
        }),
        Stored::Packed { len, place, .. } => Some(Extent {
            at: (place * UNIT_BYTES) as usize,
            len: usize::from(len) + SUM_BYTES,
        }),
        Stored::Empty | Stored::Fill { .. } | Stored::File { .. } => None,
    }
}

/// Binds a checksum to its page number, so that the bytes of one page never pass as those of
/// another.
pub fn bound_sum(sum: u32, page: u64) -> u32 {
    sum ^ (page as u32).wrapping_mul(0x9e37_79b1) ^ (page >> 32) as u32
}

impl Store {
    /// Where a form lies, or the damage if that is not inside the arena.
    #[inline(always)]
    pub(super) fn extent_of(&self, stored: Stored, page: u64) -> Result<Extent, StoreError> {
        let arena = self.memory.layout().spans as usize * SPAN_BYTES;
        match extent(stored) {
            Some(extent) if extent.len <= PAGE_BYTES && extent.at <= arena - extent.len => {
                Ok(extent)
            }
            _ => {
                let what = Damage::Entry {
                    entry: Entry::fresh(stored).pack(),
                };
                Err(StoreError::Corrupt { page, what })
            }
        }
    }

    /// Stores the page as it is in a slot.
    pub(super) fn store_raw(&self, page: &Page, sum: u32) -> Result<Stored, StoreError> {
        let assign = |span, class| self.assign(span, class);
        let Some(slot) = self
            .slots
            .allocate_in(self.slots.classes().whole_page(), Some(&assign))
        else {
            return Err(self.no_space(PAGE_BYTES));
        };
        self.populate(&slot);
        // SAFETY: the slot was just taken, is a page long, and no entry points at it yet.
        unsafe { self.memory.write(slot.at, page) };
        Ok(Stored::Raw {
            place: (slot.at / PAGE_BYTES) as u32,
            sum,
        })
    }

    /// Stores a packed form in a slot, behind its checksum.
    pub(super) fn store_packed(
        &self,
        packing: Packing,
        bytes: &[u8],
        sum: u32,
    ) -> Result<Stored, StoreError> {
        let needed = bytes.len() + SUM_BYTES;
        let Some(slot) = self
            .slots
            .allocate(needed, |span, class| self.assign(span, class))
        else {
            return Err(self.no_space(needed));
        };
        self.populate(&slot);
        // SAFETY: the slot was just taken, holds `needed` bytes, and no entry points at it yet.
        unsafe {
            self.memory.write(slot.at, &sum.to_le_bytes());
            self.memory.write(slot.at + SUM_BYTES, bytes);
        }
        let place = slot.at as u64 / UNIT_BYTES;
        Ok(Stored::Packed {
            packing,
            len: bytes.len() as u16,
            place,
        })
    }

    /// The stored bytes of a form that lies in the arena, its checksum included.
    ///
    /// # Safety
    /// The caller holds the lock of the entry that points there, or is the only thread that has the
    /// store.
    #[inline(always)]
    pub(super) unsafe fn stored_bytes(&self, at: usize, len: usize) -> &[u8] {
        // SAFETY: the caller guarantees it.
        unsafe { self.memory.bytes(at, len) }
    }

    /// The checksum to store in a slot of page `page`: not bound to the page where pages share
    /// slots.
    #[inline(always)]
    pub(super) fn slot_sum(&self, sum: u32, page: u64) -> u32 {
        match self.shared {
            None => bound_sum(sum, page),
            Some(_) => sum,
        }
    }

    /// Whether what an entry of `page` points at is that page's own, so that it may be freed, moved
    /// or overwritten. The entry of a page that is stored as it is has no check: a changed bit of
    /// its place leads to the slot of another page, and only the bytes there tell. So this takes a
    /// checksum of 4 KiB for such a page. Entries of packed pages have a check. A page in the file
    /// counts as its own, because to know better the disk would have to be read.
    ///
    /// The caller holds the lock of the entry.
    #[inline(always)]
    pub(super) fn is_own(&self, stored: Stored, page: u64) -> bool {
        match stored {
            Stored::Raw { sum, .. } => self.has_sum(stored, page, sum),
            _ => true,
        }
    }

    /// Whether the bytes of a page that is stored as it is have the checksum `sum`.
    fn has_sum(&self, stored: Stored, page: u64, sum: u32) -> bool {
        let Ok(Extent { at, len }) = self.extent_of(stored, page) else {
            return false;
        };
        // SAFETY: the caller holds the entry's lock.
        let bytes = unsafe { self.stored_bytes(at, len) };
        bound_sum(crc32c(bytes), page) == sum
    }

    /// Copies a form from one slot to another.
    ///
    /// The caller holds the lock of the entry that points at `from`, and has just taken the slot at
    /// `to`, which holds as much.
    pub(super) fn copy_slot(&self, from: usize, len: usize, to: usize) {
        // SAFETY: see above; the slots are different ones.
        unsafe { self.memory.write(to, self.memory.bytes(from, len)) };
    }

    /// Frees what a form takes. The caller has made sure that its own entry does not point at it
    /// any more.
    #[inline(always)]
    pub(super) fn release(&self, stored: Stored) {
        if let Some(Extent { at, .. }) = extent(stored) {
            if self.shared.as_ref().is_none_or(|shared| shared.leave(at)) {
                self.slots.free(at);
            }
        } else if let (Stored::File { place, .. }, Some(backing)) = (stored, &self.backing) {
            backing.free(place);
        }
    }

    /// Stores the class of a span. This happens before any entry points into the span, so that a
    /// process that opens the memory again knows the class.
    pub(super) fn assign(&self, span: u32, class: u8) {
        self.memory
            .class(span)
            .store(class, std::sync::atomic::Ordering::Release);
    }

    /// Has the system allocate the memory of a slot and of those behind it at once, instead of in a
    /// fault for each page: a piece of a span for a class that will use it up soon, a whole span
    /// for one that has many. In a smaller class the pages that stay untouched would weigh more
    /// than the faults.
    #[inline(always)]
    fn populate(&self, slot: &Slot) {
        if let Some(spans) = slot.fresh
            && spans >= LARGE_CLASS_SPANS
        {
            self.populate_behind(slot.at, self.slots.classes().bytes(slot.class), spans);
        }
    }

    fn populate_behind(&self, at: usize, bytes: usize, spans: u32) {
        let piece = match spans {
            HUGE_CLASS_SPANS.. => SPAN_BYTES,
            _ => PIECE_BYTES,
        };
        // The first slot that begins at a piece's border, or crosses it, is the first one that
        // needs the piece.
        let border = at.next_multiple_of(piece);
        if border < at + bytes && border / SPAN_BYTES == at / SPAN_BYTES {
            self.memory.populate(border, piece);
        }
    }
}

/// A class with this many spans gets memory ahead, in pieces.
const LARGE_CLASS_SPANS: u32 = 8;
/// A class with this many spans gets memory ahead, a whole span at a time.
const HUGE_CLASS_SPANS: u32 = 128;
/// Room for some ten packed pages.
const PIECE_BYTES: usize = 16 * 1024;
