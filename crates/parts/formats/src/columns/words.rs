//! A dictionary of text, shared by all batches of a column.

/// The entries of a dictionary of text, each once, in the order of their codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
    /// For each code the rank of its entry when all are sorted by their bytes.
    ranks: Vec<u32>,
    /// The code at each rank, which is the inverse of `ranks`.
    sorted: Vec<u32>,
}

impl Words {
    /// Makes a dictionary of entries in the order of their codes. Together they must have less than
    /// 4 GiB, because offsets have 32 bits.
    pub fn new<T: AsRef<[u8]>>(words: impl IntoIterator<Item = T>) -> Words {
        let mut offsets = vec![0];
        let mut bytes = Vec::new();
        for word in words {
            bytes.extend_from_slice(word.as_ref());
            offsets.push(bytes.len() as u32);
        }
        let word = |code: u32| {
            let code = code as usize;
            &bytes[offsets[code] as usize..offsets[code + 1] as usize]
        };
        // Sorted here once: every page and stripe then finds its least and greatest entry by
        // comparing ranks instead of bytes.
        let mut sorted: Vec<u32> = (0..offsets.len() as u32 - 1).collect();
        sorted.sort_unstable_by_key(|&code| word(code));
        let mut ranks = vec![0; sorted.len()];
        for (rank, &code) in sorted.iter().enumerate() {
            ranks[code as usize] = rank as u32;
        }
        Words {
            offsets,
            bytes,
            ranks,
            sorted,
        }
    }

    /// The number of entries, which is one more than the highest code.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// The bytes of the entry with this code.
    ///
    /// # Panics
    /// When there is no such code.
    pub fn word(&self, code: usize) -> &[u8] {
        &self.bytes[self.offsets[code] as usize..self.offsets[code + 1] as usize]
    }

    /// The bytes of all entries in the order of their codes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|code| self.word(code))
    }

    /// For each code the rank of its entry among all, sorted by their bytes.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// The codes in the order of the bytes of their entries.
    pub fn sorted(&self) -> &[u32] {
        &self.sorted
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn ranks_and_codes_say_the_same_order() {
        let words = Words::new(["TRUCK", "AIR", "", "REG AIR", "AIR2"]);
        assert_eq!(words.len(), 5);
        assert_eq!(words.word(3), b"REG AIR");
        assert_eq!(words.ranks(), [4, 1, 0, 3, 2]);
        assert_eq!(words.sorted(), [2, 1, 4, 3, 0]);
        assert_eq!(words.iter().count(), 5);
    }
}
