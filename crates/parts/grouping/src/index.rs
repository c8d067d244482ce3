//! Combinations of keys to group numbers.

/// Places touched together, so that they are on their way into the cache at the same time.
const BATCH: usize = 32;
/// The least number of places.
const LEAST: usize = 1 << 12;
/// From so many places on, 256 KiB, their number is only doubled.
const LARGE: usize = 1 << 14;

/// Open addressing on 64-bit keys; groups are numbered in the order of their appearance.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Its length is a power of two; at most three quarters of the places are taken.
    places: Vec<Place>,
    keys: Vec<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    key: u64,
    /// The number plus 1; 0 is an empty place.
    number: u32,
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The key of each group.
    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(self.places.as_slice()) + self.keys.capacity() * 8
    }

    /// Fills `numbers` with the group of each key.
    pub(crate) fn numbers(&mut self, keys: &[u64], numbers: &mut [u32]) {
        for (keys, numbers) in keys.chunks(BATCH).zip(numbers.chunks_mut(BATCH)) {
            self.make_room(keys.len());
            let mask = self.places.len() - 1;
            let mut at = [0; BATCH];
            let mut touched = 0;
            for (at, key) in at.iter_mut().zip(keys) {
                *at = hash(*key) as usize & mask;
                touched ^= self.places[*at].number;
            }
            std::hint::black_box(touched);
            for ((key, at), number) in keys.iter().zip(at).zip(numbers) {
                *number = self.find(*key, at);
            }
        }
    }

    /// The group of `key`, which is expected at `at` or behind it.
    fn find(&mut self, key: u64, mut at: usize) -> u32 {
        let mask = self.places.len() - 1;
        loop {
            let place = &mut self.places[at & mask];
            if place.number == 0 {
                self.keys.push(key);
                // Numbers stay below 2^32: each takes 16 bytes at least, and the bound of memory
                // ends a scan long before.
                place.number = self.keys.len() as u32;
                place.key = key;
                return place.number - 1;
            }
            if place.key == key {
                return place.number - 1;
            }
            at += 1;
        }
    }

    fn make_room(&mut self, more: usize) {
        let mut len = self.places.len().max(LEAST);
        while (self.keys.len() + more) * 4 > len * 3 {
            // Small tables grow faster: what is moved costs more than the room.
            len *= if len < LARGE { 4 } else { 2 };
        }
        if len == self.places.len() {
            return;
        }
        let mut places = vec![Place::default(); len];
        for (number, key) in self.keys.iter().enumerate() {
            let mut at = hash(*key) as usize & (len - 1);
            while places[at].number != 0 {
                at = (at + 1) & (len - 1);
            }
            places[at] = Place {
                key: *key,
                number: number as u32 + 1,
            };
        }
        self.places = places;
    }
}

/// Multiplied and folded: neighbours in any of the packed keys end up far from each other.
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
