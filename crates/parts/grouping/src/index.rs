//! Maps combinations of keys to group numbers.

/// How many slots are touched together, so that they are on their way into the cache at the same
/// time.
const BATCH: usize = 32;
/// The least number of slots of a table.
const LEAST: usize = 1 << 12;
/// The number of slots from which on it is only doubled. They are 256 KiB.
const LARGE: usize = 1 << 14;

/// A hash table with open addressing on keys of 64 bits. Groups are numbered in the order of their
/// appearance.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The length is a power of two. At most three quarters of the slots are taken, so that a
    /// search ends at an empty one.
    slots: Vec<Slot>,
    keys: Vec<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: u64,
    /// The number plus 1, or 0 in an empty slot.
    number: u32,
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The key of each group, by its number.
    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(self.slots.as_slice()) + self.keys.capacity() * 8
    }

    /// Fills `numbers` with the group of each key, which is a new one where the key is new.
    pub(crate) fn numbers(&mut self, keys: &[u64], numbers: &mut [u32]) {
        for (keys, numbers) in keys.chunks(BATCH).zip(numbers.chunks_mut(BATCH)) {
            self.make_room(keys.len());
            let mask = self.slots.len() - 1;
            let mut at = [0; BATCH];
            let mut touched = 0;
            for (at, key) in at.iter_mut().zip(keys) {
                *at = hash(*key) as usize & mask;
                touched ^= self.slots[*at].number;
            }
            // Nothing else uses the sum, and without this the loads would be optimized away.
            std::hint::black_box(touched);
            for ((key, at), number) in keys.iter().zip(at).zip(numbers) {
                *number = self.find(*key, at);
            }
        }
    }

    /// The group of `key`, which is searched from the slot `at` on.
    fn find(&mut self, key: u64, mut at: usize) -> u32 {
        let mask = self.slots.len() - 1;
        loop {
            let slot = &mut self.slots[at & mask];
            if slot.number == 0 {
                self.keys.push(key);
                // Numbers stay below 2^32, because each takes at least 16 bytes and the bound of
                // memory ends a scan long before.
                slot.number = self.keys.len() as u32;
                slot.key = key;
                return slot.number - 1;
            }
            if slot.key == key {
                return slot.number - 1;
            }
            at += 1;
        }
    }

    fn make_room(&mut self, more: usize) {
        let mut len = self.slots.len().max(LEAST);
        while (self.keys.len() + more) * 4 > len * 3 {
            // Small tables grow faster, because moving their groups costs more than the room.
            len *= if len < LARGE { 4 } else { 2 };
        }
        if len == self.slots.len() {
            return;
        }
        let mut slots = vec![Slot::default(); len];
        for (number, key) in self.keys.iter().enumerate() {
            let mut at = hash(*key) as usize & (len - 1);
            while slots[at].number != 0 {
                at = (at + 1) & (len - 1);
            }
            slots[at] = Slot {
                key: *key,
                number: number as u32 + 1,
            };
        }
        self.slots = slots;
    }
}

/// Multiplies and folds, so that neighbours in any of the packed keys end up far from each other.
pub(crate) fn hash(key: u64) -> u64 {
    let product = u128::from(key ^ 0x243f_6a88_85a3_08d3) * u128::from(0x9e37_79b9_7f4a_7c15u64);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_numbered_in_the_order_of_their_appearance() {
        let keys: Vec<u64> = (0..50_000u64).map(|i| (i * i % 7919) << 20).collect();
        let mut index = Index::default();
        let mut numbers = vec![0; keys.len()];
        index.numbers(&keys, &mut numbers);
        let mut seen = std::collections::HashMap::new();
        for (key, number) in keys.iter().zip(&numbers) {
            let next = seen.len() as u32;
            assert_eq!(*seen.entry(*key).or_insert(next), *number);
            assert_eq!(index.keys()[*number as usize], *key);
        }
        assert_eq!(index.len(), seen.len());
    }
}
