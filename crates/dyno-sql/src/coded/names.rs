//! Strings to group numbers: what the codes of different files have in common.

/// Open addressing over an arena of bytes, one small entry for each string.
///
/// A general map would own each key by itself; 100,000 allocations for each thread and query are
/// a visible part of a query of a tenth of a second.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// `hash << 32 | number + 1`; 0 is an empty place. Its length is a power of two.
    places: Vec<u64>,
    /// Where each string ends in `bytes`; it starts where the one before ends.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string with this number.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.places.len() * 8 + self.ends.capacity() * 8 + self.bytes.capacity()
    }

    /// The number of a string, the next one when it is new.
    pub(super) fn number(&mut self, name: &[u8]) -> usize {
        // Half full at most; numbers stay below 2^32 because each takes 8 bytes here and the
        // memory pool refuses more long before.
        if (self.ends.len() + 1) * 2 > self.places.len() {
            self.grow();
        }
        let hash = hash(name);
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let place = self.places[at];
            if place == 0 {
                self.bytes.extend_from_slice(name);
                self.ends.push(self.bytes.len());
                self.places[at] = (hash & 0xffff_ffff) << 32 | self.ends.len() as u64;
                return self.ends.len() - 1;
            }
            let number = (place as u32 - 1) as usize;
            if place >> 32 == hash & 0xffff_ffff && self.get(number) == name {
                return number;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let len = (self.places.len() * 2).max(1024);
        let mask = len - 1;
        let mut places = vec![0; len];
        for number in 0..self.ends.len() {
            let hash = hash(self.get(number));
            let mut at = hash as usize & mask;
            while places[at] != 0 {
                at = (at + 1) & mask;
            }
            places[at] = (hash & 0xffff_ffff) << 32 | (number as u64 + 1);
        }
        self.places = places;
    }
}

/// Eight bytes at a step, multiplied and folded; callsigns are one or two steps.
fn hash(name: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = name.as_chunks::<8>();
    let mut last = [0u8; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut state = name.len() as u64;
    for word in words.iter().chain(std::iter::once(&last)) {
        let product = u128::from(state ^ u64::from_le_bytes(*word)) * u128::from(ODD);
        state = product as u64 ^ (product >> 64) as u64 ^ ODD;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_appearance() {
        let mut names = Names::default();
        let text: Vec<String> = (0..5000).map(|i| format!("K{}", i * i % 3001)).collect();
        let mut seen: Vec<&str> = Vec::new();
        for name in text.iter().map(String::as_str).chain([""]) {
            let expected = seen.iter().position(|s| *s == name).unwrap_or_else(|| {
                seen.push(name);
                seen.len() - 1
            });
            assert_eq!(names.number(name.as_bytes()), expected);
            assert_eq!(names.get(expected), name.as_bytes());
        }
        assert_eq!(names.len(), seen.len());
    }
}
