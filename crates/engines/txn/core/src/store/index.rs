//! The point index, from the hash of a key to its row's slot: a hash table with linear probing.
//!
//! An entry is 8 bytes, the hash and the slot, so that a miss seldom looks at a row and growing
//! never does. Deleting moves later entries of the chain back, so that there are no tombstones. The
//! index is split into [`SEGMENTS`] tables by the first bits of the hash, each of which doubles
//! when it is full. So no insert moves more than 1/256 of all entries.

use super::Slot;

/// The number of tables, a power of two.
const SEGMENTS: usize = 1 << SEGMENT_BITS;
const SEGMENT_BITS: u32 = 8;
/// The other bits of the hash, which choose the entry within a table.
const LEFT_BITS: u32 = u32::BITS - SEGMENT_BITS;
/// The entries of a new table, a power of two.
const FIRST: usize = 1 << 4;
const EMPTY: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct PointIndex {
    segments: Vec<Segment>,
    /// The entries of all tables, used or not.
    entries: usize,
}

#[derive(Debug)]
struct Segment {
    entries: Box<[u64]>,
    used: usize,
    /// How many bits of the hash choose the first entry to look at.
    bits: u32,
}

impl PointIndex {
    pub fn new() -> Self {
        let segment = || Segment {
            entries: vec![EMPTY; FIRST].into(),
            used: 0,
            bits: FIRST.trailing_zeros(),
        };
        Self {
            segments: (0..SEGMENTS).map(|_| segment()).collect(),
            entries: SEGMENTS * FIRST,
        }
    }

    fn segment(&self, hash: u32) -> &Segment {
        &self.segments[(hash >> LEFT_BITS) as usize]
    }

    fn segment_mut(&mut self, hash: u32) -> &mut Segment {
        &mut self.segments[(hash >> LEFT_BITS) as usize]
    }

    /// The slot of this hash whose row `same` accepts.
    pub fn find(&self, hash: u32, same: impl FnMut(Slot) -> bool) -> Option<Slot> {
        self.segment(hash).find(hash, same)
    }

    pub fn insert(&mut self, hash: u32, slot: Slot) {
        let segment = self.segment_mut(hash);
        let before = segment.entries.len();
        segment.insert(hash, slot);
        let added = segment.entries.len() - before;
        self.entries += added;
    }

    pub fn remove(&mut self, hash: u32, slot: Slot) {
        self.segment_mut(hash).remove(hash, slot);
    }

    /// The bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.entries * size_of::<u64>()
    }

    /// The entry at which a search for this hash begins, for prefetching.
    pub fn first_entry(&self, hash: u32) -> &u64 {
        let segment = self.segment(hash);
        &segment.entries[segment.first(hash)]
    }
}

impl Segment {
    fn find(&self, hash: u32, mut same: impl FnMut(Slot) -> bool) -> Option<Slot> {
        let mut at = self.first(hash);
        loop {
            let entry = self.entries[at];
            if entry == EMPTY {
                return None;
            }
            if (entry >> 32) as u32 == hash && same(entry as u32) {
                return Some(entry as u32);
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
    }

    fn insert(&mut self, hash: u32, slot: Slot) {
        if (self.used + 1) * 4 > self.entries.len() * 3 {
            self.grow();
        }
        self.used += 1;
        self.place(u64::from(hash) << 32 | u64::from(slot));
    }

    fn remove(&mut self, hash: u32, slot: Slot) {
        let mask = self.entries.len() - 1;
        let wanted = u64::from(hash) << 32 | u64::from(slot);
        let mut hole = self.first(hash);
        while self.entries[hole] != wanted {
            if self.entries[hole] == EMPTY {
                return;
            }
            hole = (hole + 1) & mask;
        }
        self.used -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry == EMPTY {
                break;
            }
            let home = self.first((entry >> 32) as u32);
            // An entry may move into the hole when its first choice does not lie between hole and
            // entry.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = EMPTY;
    }

    fn first(&self, hash: u32) -> usize {
        let left = (hash & ((1 << LEFT_BITS) - 1)) as usize;
        // A table may have more entries than these bits can tell apart. Then neighbours share a
        // first choice.
        if self.bits <= LEFT_BITS {
            left >> (LEFT_BITS - self.bits)
        } else {
            left << (self.bits - LEFT_BITS)
        }
    }

    fn place(&mut self, entry: u64) {
        let mut at = self.first((entry >> 32) as u32);
        while self.entries[at] != EMPTY {
            at = (at + 1) & (self.entries.len() - 1);
        }
        self.entries[at] = entry;
    }

    fn grow(&mut self) {
        let entries = vec![EMPTY; self.entries.len() * 2].into();
        let old = std::mem::replace(&mut self.entries, entries);
        self.bits += 1;
        for entry in old {
            if entry != EMPTY {
                self.place(entry);
            }
        }
    }
}

/// The hash of a key in its table. It is mixed with a seed that clients do not know, so that they
/// cannot choose keys that make long chains.
pub(crate) fn hash(seed: u64, table: u32, key: &[u8]) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = seed ^ (u64::from(table) + 1).wrapping_mul(ODD);
    let (chunks, rest) = key.as_chunks::<8>();
    for chunk in chunks {
        state = fold(
            state ^ u64::from_le_bytes(*chunk),
            ODD ^ seed.rotate_left(17),
        );
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    state = fold(state ^ u64::from_le_bytes(last), ODD);
    state = fold(state ^ key.len() as u64, 0xd6e8_feb8_6659_fd93 ^ seed);
    (state >> 32) as u32 ^ state as u32
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b | 1);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_does_what_a_map_does() {
        let mut random = dyno_sim::Random::new(7);
        let (mut index, mut model) = (PointIndex::new(), BTreeMap::new());
        for slot in 0..20_000u32 {
            // Few hashes, near the end of the table too: long chains that wrap around.
            let hash = u32::MAX - (random.bits() % 300) as u32 * 1_000;
            if random.one_in(3)
                && let Some((&old, &of)) = model.range(random.bits() as u32 % 20_000..).next()
            {
                index.remove(of, old);
                model.remove(&old);
            }
            index.insert(hash, slot);
            model.insert(slot, hash);
        }
        for slot in 0..20_000 {
            let wanted = model.get(&slot).copied();
            let found = wanted.and_then(|hash| index.find(hash, |other| other == slot));
            assert_eq!(found, wanted.map(|_| slot));
        }
    }

    #[test]
    fn hashes_spread() {
        let mut buckets = [0u32; 64];
        for number in 0..64_000u64 {
            buckets[(hash(5, 1, &number.to_be_bytes()) >> 26) as usize] += 1;
        }
        assert!(
            buckets.iter().all(|&n| (700..1300).contains(&n)),
            "{buckets:?}"
        );
    }
}
