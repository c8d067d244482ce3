//! Pages of equal content in one slot: which slots are known by content, and how many entries point
//! at each. The store's memory has none of this; a process that opens it again counts anew.
//!
//! Locks are taken in one order: an entry's, a shard by content, a shard by slot. A reference to a
//! slot is counted under its shard by content, and its bytes are compared under it too, so that no
//! thread frees or moves the slot meanwhile.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::hash::Hash;

use parking_lot::{Mutex, MutexGuard};
use twox_hash::XxHash3_128;

use super::slot_access::{Extent, extent};
use crate::index::entry::Stored;
use dyno_codec::lz4::Page;

/// Shards of each map; a power of two.
const SHARDS: usize = 64;
/// Bytes of one bucket of each map: key, value and one byte of control.
const CONTENT_BYTES: usize = size_of::<(u64, SharedSlot)>() + 1;
const SLOT_BYTES: usize = size_of::<(usize, u64)>() + 1;
/// A map that uses less than one in this many of its buckets gives the others back.
const SPARSE: usize = 4;

/// A slot that entries with equal content point at.
#[derive(Debug, Clone, Copy)]
struct SharedSlot {
    stored: Stored,
    references: u64,
}

/// The slots by content, and the content of each slot.
#[derive(Debug)]
pub struct Shared {
    by_content: Box<[Mutex<HashMap<u64, SharedSlot>>]>,
    /// Content of the slot at a byte of the arena. A slot that is not here has one entry.
    by_slot: Box<[Mutex<HashMap<usize, u64>>]>,
}

/// The hash by which a page is looked up; the bytes are compared as well.
pub fn content_of(page: &Page) -> u64 {
    XxHash3_128::oneshot(page) as u64
}

impl Shared {
    pub fn new() -> Self {
        Self {
            by_content: (0..SHARDS).map(|_| Mutex::default()).collect(),
            by_slot: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Counts one more entry for the slot of pages with `content`, if `same` confirms that it holds
    /// this very page.
    pub fn join(&self, content: u64, same: impl FnOnce(Stored) -> bool) -> Option<Stored> {
        let mut slots = self.content(content);
        let slot = slots.get_mut(&content)?;
        if !same(slot.stored) {
            return None;
        }
        slot.references += 1;
        Some(slot.stored)
    }

    /// Makes a new slot known, which one entry is about to point at. If another slot is already
    /// known for the content, this one stays unknown and is never shared.
    pub fn add(&self, content: u64, stored: Stored) {
        let Some(Extent { at, .. }) = extent(stored) else {
            return;
        };
        let mut slots = self.content(content);
        if let MapEntry::Vacant(free) = slots.entry(content) {
            let references = 1;
            free.insert(SharedSlot { stored, references });
            self.slot(at).insert(at, content);
        }
    }

    /// Counts an entry that was found when a store was opened again. `content` is called once for
    /// each slot, and returns `None` for a damaged page.
    pub fn count(&self, stored: Stored, content: impl FnOnce() -> Option<u64>) {
        let Some(Extent { at, .. }) = extent(stored) else {
            return;
        };
        let known_content = self.slot(at).get(&at).copied();
        match known_content {
            None => self.add_counted(content().unwrap_or(at as u64), stored),
            Some(content) => {
                if let Some(slot) = self.content(content).get_mut(&content) {
                    slot.references += 1;
                }
            }
        }
    }

    /// As `add`, but makes the slot known in any case, because more entries may point at it. If
    /// another slot has its content, it is known by the next free number, where a look-up costs a
    /// comparison that fails.
    fn add_counted(&self, content: u64, stored: Stored) {
        let mut key = content;
        while self.content(key).contains_key(&key) {
            key = key.wrapping_add(1);
        }
        self.add(key, stored);
    }

    /// Counts one entry less for the slot at `at`, and returns whether the slot is free now.
    pub fn leave(&self, at: usize) -> bool {
        let content = self.slot(at).get(&at).copied();
        let Some(content) = content else {
            return true;
        };
        let mut slots = self.content(content);
        let MapEntry::Occupied(mut slot) = slots.entry(content) else {
            return true;
        };
        slot.get_mut().references -= 1;
        if slot.get().references > 0 {
            return false;
        }
        slot.remove();
        self.slot(at).remove(&at);
        true
    }

    /// Forgets the slot at `at`, because its one entry is about to hold another page in it. Returns
    /// false if other entries point at it; then its bytes must stay.
    pub fn leave_alone(&self, at: usize) -> bool {
        let content = self.slot(at).get(&at).copied();
        let Some(content) = content else {
            return true;
        };
        let mut slots = self.content(content);
        let MapEntry::Occupied(slot) = slots.entry(content) else {
            return true;
        };
        if slot.get().references > 1 {
            return false;
        }
        slot.remove();
        self.slot(at).remove(&at);
        true
    }

    /// Follows the one entry of `old` to `new`, which holds the same page. Returns false if other
    /// entries point at `old`; then it must stay.
    pub fn moved(&self, old: Stored, new: Stored) -> bool {
        let (Some(from), Some(to)) = (extent(old), extent(new)) else {
            return true;
        };
        let (from, to) = (from.at, to.at);
        let content = self.slot(from).get(&from).copied();
        let Some(content) = content else {
            return true;
        };
        let mut slots = self.content(content);
        let Some(slot) = slots.get_mut(&content) else {
            return true;
        };
        if slot.references > 1 {
            return false;
        }
        slot.stored = new;
        self.slot(from).remove(&from);
        self.slot(to).insert(to, content);
        true
    }

    /// Entries beyond the first of each slot: pages that take no slot of their own.
    pub fn saved(&self) -> u64 {
        let of = |shard: &Mutex<HashMap<u64, SharedSlot>>| {
            let slots = grasp(shard);
            slots.values().map(|slot| slot.references - 1).sum::<u64>()
        };
        self.by_content.iter().map(of).sum()
    }

    /// Bytes of memory that the maps take, their free buckets included.
    pub fn overhead_bytes(&self) -> u64 {
        // A map keeps one bucket in eight free.
        let places = |capacity: usize| capacity + capacity / 7;
        let contents = self.by_content.iter().map(|shard| grasp(shard).capacity());
        let all = self.by_slot.iter().map(|shard| grasp(shard).capacity());
        let contents: usize = contents.map(places).sum();
        let all: usize = all.map(places).sum();
        (contents * CONTENT_BYTES + all * SLOT_BYTES) as u64
    }

    /// Gives the allocator back the memory of maps that were larger once. Returns whether there was
    /// such a map.
    pub fn shrink(&self) -> bool {
        let mut shrank = false;
        for shard in &self.by_content {
            shrank |= shrink_sparse(&mut grasp(shard));
        }
        for shard in &self.by_slot {
            shrank |= shrink_sparse(&mut grasp(shard));
        }
        shrank
    }

    fn content(&self, content: u64) -> MutexGuard<'_, HashMap<u64, SharedSlot>> {
        grasp(&self.by_content[content as usize % SHARDS])
    }

    fn slot(&self, at: usize) -> MutexGuard<'_, HashMap<usize, u64>> {
        grasp(&self.by_slot[at / crate::arena::classes::SPAN_BYTES % SHARDS])
    }
}

/// Shrinks a map that uses few of its buckets, and returns whether it did.
fn shrink_sparse<K: Eq + Hash, V>(slots: &mut HashMap<K, V>) -> bool {
    let is_sparse = slots.len() < slots.capacity() / SPARSE;
    if is_sparse {
        slots.shrink_to_fit();
    }
    is_sparse
}

/// Counts and maps are consistent between any two of these sections, whichever thread panicked.
fn grasp<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE_BYTES;

    #[test]
    fn maps_that_were_larger_once_are_shrunk_and_those_in_use_are_not() {
        let shared = Shared::new();
        assert!(!shared.shrink());
        let places = 0..10_000;
        for place in places.clone() {
            shared.add(u64::from(place), Stored::Raw { place, sum: 0 });
        }
        assert!(!shared.shrink());
        let full = shared.overhead_bytes();
        for place in places {
            assert!(shared.leave(place as usize * PAGE_BYTES));
        }
        assert!(shared.shrink());
        assert!(shared.overhead_bytes() < full / 10);
        assert!(!shared.shrink());
    }
}
