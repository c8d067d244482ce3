//! Finds repeated values in text that came without codes, by a hash table from bytes to codes.

/// Distinct values, whose codes count them in the order in which they were found.
#[derive(Default)]
pub(super) struct DistinctValues {
    /// Where each value ends in `bytes`. It begins where the one before ends.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    hashes: Vec<u32>,
    /// Codes plus one, and 0 for an empty slot. The length is a power of two, or 0.
    slots: Vec<u32>,
}

const LEAST_SLOTS: usize = 1024;

impl DistinctValues {
    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
        self.hashes.clear();
        self.slots.fill(0);
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all distinct values together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn word(&self, code: usize) -> &[u8] {
        let begin = if code == 0 { 0 } else { self.ends[code - 1] };
        &self.bytes[begin..self.ends[code]]
    }

    /// All codes in the order of the bytes of their values.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let mut codes: Vec<u32> = (0..self.len() as u32).collect();
        codes.sort_unstable_by_key(|&code| self.word(code as usize));
        codes
    }

    /// The code of a value, which is a new one if it was not seen before.
    pub(super) fn code(&mut self, word: &[u8]) -> u32 {
        // At most half of the slots are taken, so the search below meets an empty one.
        if self.slots.len() < 2 * (self.len() + 1) {
            self.grow();
        }
        let hash = hash(word);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                0 => break,
                slot => {
                    let code = slot - 1;
                    if self.hashes[code as usize] == hash && self.word(code as usize) == word {
                        return code;
                    }
                }
            }
            at = (at + 1) & mask;
        }
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
        self.hashes.push(hash);
        self.slots[at] = self.len() as u32;
        self.slots[at] - 1
    }

    fn grow(&mut self) {
        let slots = (2 * self.slots.len()).max(LEAST_SLOTS);
        self.slots.clear();
        self.slots.resize(slots, 0);
        for (code, &hash) in self.hashes.iter().enumerate() {
            let mut at = hash as usize & (slots - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = code as u32 + 1;
        }
    }
}

/// Multiplies eight bytes at a time and folds the halves of the product.
fn hash(word: &[u8]) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |state: u64, part: u64| {
        let product = u128::from(state ^ part) * u128::from(ODD);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = ODD ^ word.len() as u64;
    let (parts, rest) = word.as_chunks::<8>();
    for part in parts {
        state = fold(state, u64::from_le_bytes(*part));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let state = fold(fold(state, u64::from_le_bytes(last)), ODD);
    (state ^ state >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_codes_while_it_grows() {
        let mut distinct = DistinctValues::default();
        let words: Vec<String> = (0..5000).map(|i| format!("word {}", i % 2500)).collect();
        for (i, word) in words.iter().enumerate() {
            assert_eq!(distinct.code(word.as_bytes()), i as u32 % 2500);
        }
        assert_eq!(distinct.len(), 2500);
        assert_eq!(distinct.word(2499), b"word 2499");
        assert_eq!(distinct.sorted()[..3], [0, 1, 10]);
        distinct.clear();
        assert_eq!(distinct.code(b""), 0);
        assert_eq!(distinct.code(b"word 3"), 1);
    }
}
