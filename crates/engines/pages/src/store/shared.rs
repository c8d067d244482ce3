//! Pages of equal content in one slot: which slots there are by content, and how many entries point
//! at each. Nothing of this is in the store's memory; who opens it again counts anew.
//!
//! Locks are taken in one order: an entry's, a shard by content, a shard by place. A slot's
//! reference is taken under its shard by content, and so is the look at its bytes, so that no
//! thread frees or moves it meanwhile.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use parking_lot::{Mutex, MutexGuard};
use twox_hash::XxHash3_128;

use super::place::extent;
use crate::index::entry::Stored;
use dyno_codec::lz4::Page;

/// Shards of each map, a power of two.
const SHARDS: usize = 64;
/// Bytes of one place of each map: key, value and a byte of the map's own.
const CONTENT_BYTES: usize = size_of::<(u64, Known)>() + 1;
const PLACE_BYTES: usize = size_of::<(usize, u64)>() + 1;
/// A map that uses less than one in so many of its places gives the others back.
const SPARSE: usize = 4;

/// A slot that entries with equal content point at.
#[derive(Debug, Clone, Copy)]
struct Known {
    stored: Stored,
    references: u64,
}

/// Slots by content.
#[derive(Debug)]
pub struct Shared {
    by_content: Box<[Mutex<HashMap<u64, Known>>]>,
    /// Content of the slot at a byte of the arena. A slot that is not here has one entry.
    by_place: Box<[Mutex<HashMap<usize, u64>>]>,
}

/// What the content of a page is known by; pages are compared as well.
pub fn content_of(page: &Page) -> u64 {
    XxHash3_128::oneshot(page) as u64
}

impl Shared {
    /// Nothing known.
    pub fn new() -> Self {
        Self {
            by_content: (0..SHARDS).map(|_| Mutex::default()).collect(),
            by_place: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// One more entry for the slot of pages with `content`, when `same` says that it holds the very
    /// page.
    pub fn join(&self, content: u64, same: impl FnOnce(Stored) -> bool) -> Option<Stored> {
        let mut slots = self.content(content);
        let known = slots.get_mut(&content)?;
        if !same(known.stored) {
            return None;
        }
        known.references += 1;
        Some(known.stored)
    }

    /// A new slot, which one entry is about to point at. When another slot is known for the content
    /// already, this one stays alone.
    pub fn add(&self, content: u64, stored: Stored) {
        let Some((at, _)) = extent(stored) else {
            return;
        };
        let mut slots = self.content(content);
        if let Place::Vacant(free) = slots.entry(content) {
            let references = 1;
            free.insert(Known { stored, references });
            self.place(at).insert(at, content);
        }
    }

    /// An entry that was found when a store was opened again. `content` is asked for once for each
    /// slot, and gives nothing for a damaged page.
    pub fn count(&self, stored: Stored, content: impl FnOnce() -> Option<u64>) {
        let Some((at, _)) = extent(stored) else {
            return;
        };
        let known = self.place(at).get(&at).copied();
        match known {
            None => self.add_counted(content().unwrap_or(at as u64), stored),
            Some(content) => {
                if let Some(known) = self.content(content).get_mut(&content) {
                    known.references += 1;
                }
            }
        }
    }

    /// As `add`, but known in any case: more entries may point at the slot. Under the content of
    /// another slot it could be met again, which costs a comparison that fails.
    fn add_counted(&self, content: u64, stored: Stored) {
        let mut key = content;
        while self.content(key).contains_key(&key) {
            key = key.wrapping_add(1);
        }
        self.add(key, stored);
    }

    /// One entry less for the slot at `at`: whether it is free now.
    pub fn leave(&self, at: usize) -> bool {
        let known = self.place(at).get(&at).copied();
        let Some(content) = known else {
            return true;
        };
        let mut slots = self.content(content);
        let Place::Occupied(mut known) = slots.entry(content) else {
            return true;
        };
        known.get_mut().references -= 1;
        if known.get().references > 0 {
            return false;
        }
        known.remove();
        self.place(at).remove(&at);
        true
    }

    /// Forgets the slot at `at`, which its one entry is about to hold another page in. False when
    /// it is not the one entry: then it must stay.
    pub fn leave_alone(&self, at: usize) -> bool {
        let known = self.place(at).get(&at).copied();
        let Some(content) = known else {
            return true;
        };
        let mut slots = self.content(content);
        let Place::Occupied(known) = slots.entry(content) else {
            return true;
        };
        if known.get().references > 1 {
            return false;
        }
        known.remove();
        self.place(at).remove(&at);
        true
    }

    /// The one entry of `old` is about to point at `new`, which holds the same page. False when it
    /// is not the one entry: then it must stay.
    pub fn moved(&self, old: Stored, new: Stored) -> bool {
        let (Some((from, _)), Some((to, _))) = (extent(old), extent(new)) else {
            return true;
        };
        let known = self.place(from).get(&from).copied();
        let Some(content) = known else {
            return true;
        };
        let mut slots = self.content(content);
        let Some(known) = slots.get_mut(&content) else {
            return true;
        };
        if known.references > 1 {
            return false;
        }
        known.stored = new;
        self.place(from).remove(&from);
        self.place(to).insert(to, content);
        true
    }

    /// Entries beyond the first of each slot: pages that take no slot of their own.
    pub fn saved(&self) -> u64 {
        let of = |shard: &Mutex<HashMap<u64, Known>>| {
            let slots = grasp(shard);
            slots
                .values()
                .map(|known| known.references - 1)
                .sum::<u64>()
        };
        self.by_content.iter().map(of).sum()
    }

    /// Bytes of memory that this takes, used places and others.
    pub fn overhead_bytes(&self) -> u64 {
        // A map of that capacity has an eighth more places.
        let places = |capacity: usize| capacity + capacity / 7;
        let contents = self.by_content.iter().map(|shard| grasp(shard).capacity());
        let all = self.by_place.iter().map(|shard| grasp(shard).capacity());
        let contents: usize = contents.map(places).sum();
        let all: usize = all.map(places).sum();
        (contents * CONTENT_BYTES + all * PLACE_BYTES) as u64
    }

    /// Gives back memory of maps that were larger once.
    pub fn shrink(&self) {
        for shard in &self.by_content {
            let mut slots = grasp(shard);
            if slots.len() < slots.capacity() / SPARSE {
                slots.shrink_to_fit();
            }
        }
        for shard in &self.by_place {
            let mut slots = grasp(shard);
            if slots.len() < slots.capacity() / SPARSE {
                slots.shrink_to_fit();
            }
        }
    }

    fn content(&self, content: u64) -> MutexGuard<'_, HashMap<u64, Known>> {
        grasp(&self.by_content[content as usize % SHARDS])
    }

    fn place(&self, at: usize) -> MutexGuard<'_, HashMap<usize, u64>> {
        grasp(&self.by_place[at / crate::arena::classes::SPAN_BYTES % SHARDS])
    }
}

/// Counts and maps are whole between any two of these sections, whichever thread panicked.
fn grasp<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
