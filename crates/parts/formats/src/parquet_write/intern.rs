//! Builds dictionaries that grow with the values of a row group.

/// Gives each value a code, in the order of first appearance, and keeps the values in PLAIN
/// encoding, which is the body of a dictionary page.
#[derive(Default)]
pub(super) struct Interner {
    /// Codes plus one, and 0 for an empty slot. The length is a power of two, of which at most half
    /// is taken.
    slots: Vec<u32>,
    /// Where each value begins in `plain`, and the hash by which it was placed.
    entries: Vec<Entry>,
    plain: Vec<u8>,
    /// For each code of the caller the code here plus one, or 0 if it has none yet.
    by_code: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    hash: u32,
}

const FIRST_SLOTS: usize = 1024;

impl Interner {
    /// Forgets all values and keeps their memory. The table shrinks to its first size, so that
    /// small dictionaries after a large one stay in the cache.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.slots.resize(FIRST_SLOTS, 0);
        self.entries.clear();
        self.plain.clear();
        self.by_code.clear();
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All values in PLAIN encoding, in the order of their codes.
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// The code of an integer that is stored as these bytes.
    #[inline]
    pub fn integer<const N: usize>(&mut self, value: i64, stored: [u8; N]) -> u32 {
        let hash = mixed(value as u64, 0) as u32;
        self.place(
            hash,
            |plain, at| plain[at..at + N] == stored,
            |plain| plain.extend(stored),
        )
    }

    /// The code of a text, which is a new one if it was not seen before.
    #[inline]
    pub fn text(&mut self, value: &[u8]) -> u32 {
        let length = (value.len() as u32).to_le_bytes();
        self.place(
            hash(value),
            |plain, at| plain[at..at + 4] == length && is_same(&plain[at + 4..], value),
            |plain| push_text(plain, value),
        )
    }

    /// The code here of the value that has `code` in the caller's dictionary of `entries`. `push`
    /// appends the value if it is new.
    #[inline]
    pub fn code(&mut self, code: u32, entries: usize, push: impl FnOnce(&mut Vec<u8>)) -> u32 {
        if self.by_code.len() < entries {
            self.by_code.resize(entries, 0);
        }
        let known = self.by_code[code as usize];
        if known > 0 {
            return known - 1;
        }
        let place = self.entries.len() as u32;
        self.entries.push(Entry {
            start: self.plain.len() as u32,
            hash: 0,
        });
        push(&mut self.plain);
        self.by_code[code as usize] = place + 1;
        place
    }

    #[inline]
    fn place(
        &mut self,
        hash: u32,
        is_at: impl Fn(&[u8], usize) -> bool,
        push: impl FnOnce(&mut Vec<u8>),
    ) -> u32 {
        // Half of the slots are empty at least, so this ends. Equal hashes are told apart by their
        // bytes.
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let Some(code) = self.slots[slot].checked_sub(1) {
            let entry = self.entries[code as usize];
            if entry.hash == hash && is_at(&self.plain, entry.start as usize) {
                return code;
            }
            slot = (slot + 1) & mask;
        }
        let code = self.entries.len() as u32;
        self.slots[slot] = code + 1;
        self.entries.push(Entry {
            start: self.plain.len() as u32,
            hash,
        });
        push(&mut self.plain);
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        }
        code
    }

    #[cold]
    fn grow(&mut self) {
        // By four at once, since each time all values are placed anew.
        let slots = self.slots.len() * 4;
        self.slots.clear();
        self.slots.resize(slots, 0);
        for (code, entry) in (1..).zip(&self.entries) {
            let mut slot = entry.hash as usize & (slots - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = code;
        }
    }
}

/// Appends a text in PLAIN encoding, behind its length.
pub(super) fn push_text(plain: &mut Vec<u8>, value: &[u8]) {
    plain.extend_from_slice(&(value.len() as u32).to_le_bytes());
    plain.extend_from_slice(value);
}

/// Whether `stored` begins with the value. Most values are a few machine words long, for which a
/// call of `memcmp` takes longer than this.
#[inline]
fn is_same(stored: &[u8], value: &[u8]) -> bool {
    let Some(stored) = stored.get(..value.len()) else {
        return false;
    };
    let (a, b) = (stored.as_chunks::<8>(), value.as_chunks::<8>());
    a.0.iter().zip(b.0).all(|(a, b)| a == b) && a.1.iter().zip(b.1).all(|(a, b)| a == b)
}

/// Multiplies by a large odd number and joins both halves of the product, so that every bit of the
/// input counts in the low bits, which choose the slot.
#[inline]
fn mixed(word: u64, hash: u64) -> u64 {
    let product = u128::from(word ^ hash ^ 0x2d35_8dcc_aa6c_78a5) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn hash(value: &[u8]) -> u32 {
    let mut hash = value.len() as u64;
    let (words, rest) = value.as_chunks::<8>();
    for word in words {
        hash = mixed(u64::from_le_bytes(*word), hash);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mixed(u64::from_le_bytes(last), hash) as u32
}
