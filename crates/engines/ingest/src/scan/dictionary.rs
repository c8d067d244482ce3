//! Maps values to codes: one look-up per field, and no allocation once a value is known.

use std::collections::HashMap;

use super::fast::{BATCH, Failed};

/// Longest string that the hash table itself holds, in bytes.
const SHORT: usize = 16;

const FREE: u32 = u32::MAX;

/// Bytes of an entry in the map of long strings besides the string, with its share of free slots.
const LONG_ENTRY: usize = 64;

/// Bytes of an open-addressing table with this many slots. One that is nearly full counts with the
/// four times larger one that it will be moved to.
fn table_bytes<T>(slots: usize, values: usize) -> usize {
    let nearly_full = values * 16 > slots * 7;
    size_of::<T>() * slots * if nearly_full { 5 } else { 1 }
}

#[derive(Clone, Copy)]
struct Slot {
    low: u64,
    high: u64,
    code: u32,
}

/// A dictionary of strings in the order of their first appearance.
pub struct Strings {
    slots: Vec<Slot>,
    long: HashMap<Box<[u8]>, u32>,
    /// Bytes of memory that `long` uses.
    long_bytes: usize,
    /// The strings as in a Parquet dictionary page: length (4 bytes), then bytes.
    plain: Vec<u8>,
    values: u32,
    least: Vec<u8>,
    greatest: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Self {
        Strings {
            slots: vec![
                Slot {
                    low: 0,
                    high: 0,
                    code: FREE
                };
                1024
            ],
            long: HashMap::new(),
            long_bytes: 0,
            plain: Vec::new(),
            values: 0,
            least: Vec::new(),
            greatest: Vec::new(),
        }
    }
}

/// The strings of one batch as keys of 16 bytes. Bytes after a string's end are cleared, so strings
/// of up to 16 bytes without a NUL have different keys.
pub(super) struct Keys {
    low: [u64; BATCH],
    high: [u64; BATCH],
    len: [u64; BATCH],
    hash: [u64; BATCH],
}

impl Keys {
    pub(super) fn new() -> Self {
        Keys {
            low: [0; BATCH],
            high: [0; BATCH],
            len: [0; BATCH],
            hash: [0; BATCH],
        }
    }

    /// String number `i` begins with `bytes` and has `len` of them.
    #[inline(always)]
    pub(super) fn set(&mut self, i: usize, bytes: [u8; SHORT], len: usize) {
        let word = u128::from_le_bytes(bytes);
        (self.low[i], self.high[i], self.len[i]) = (word as u64, (word >> 64) as u64, len as u64);
    }

    /// Clears the bytes that do not belong to the strings, and marks strings that are too long for
    /// a key.
    #[inline(always)]
    pub(super) fn finish(&mut self, failed: &mut Failed) {
        let words = self.low.iter_mut().zip(&mut self.high).zip(&mut self.hash);
        for (((low, high), hash), (&len, failed)) in words.zip(self.len.iter().zip(failed)) {
            *low &= first_bytes(len.min(8));
            *high &= first_bytes(len.saturating_sub(8).min(8));
            *hash = mix(*low, *high);
            *failed |= u64::from(len > SHORT as u64);
        }
    }
}

/// Mask of the first `n` bytes of a word, 0 to 8.
#[inline(always)]
fn first_bytes(n: u64) -> u64 {
    // Two half shifts, because one by 64 is undefined.
    !((!0u64 << (4 * n)) << (4 * n))
}

/// The key of a string: its bytes, padded with zeros. `None` if it is longer than a key, or has a
/// NUL: padded, one that ends in a NUL would equal a shorter one.
#[inline(always)]
fn short_key(string: &[u8]) -> Option<(u64, u64)> {
    let len = string.len();
    let low = match (
        string.first_chunk(),
        string.first_chunk(),
        string.last_chunk(),
    ) {
        (Some(&eight), _, _) => u64::from_le_bytes(eight),
        // Two words of four bytes that overlap where the string has fewer than eight.
        (_, Some(&first), Some(&last)) => {
            let (first, last) = (u32::from_le_bytes(first), u32::from_le_bytes(last));
            u64::from(first) | u64::from(last) << (8 * (len - 4))
        }
        _ => {
            let from_last = string.iter().rev();
            from_last.fold(0, |word, &byte| word << 8 | u64::from(byte))
        }
    };
    let high = match string.last_chunk() {
        Some(&last) if (9..=SHORT).contains(&len) => {
            u64::from_le_bytes(last) >> (8 * (SHORT - len))
        }
        _ => 0,
    };
    let len = len as u64;
    let is_whole = !has_zero(low | !first_bytes(len.min(8)))
        & !has_zero(high | !first_bytes(len.saturating_sub(8).min(8)));
    (len <= SHORT as u64 && is_whole).then_some((low, high))
}

/// Whether one of the eight bytes is zero.
#[inline(always)]
fn has_zero(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
}

/// Mixes a key with 64-bit multiplications, of which vector units do eight at a time.
#[inline(always)]
fn mix(low: u64, high: u64) -> u64 {
    let mixed = low.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ high.wrapping_mul(0xe703_7ed1_a0b4_28db);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 20
}

impl Strings {
    /// Appends the codes of the first `n` of `keys` to `codes`; a row that failed gets 0 and leaves
    /// nothing in the dictionary.
    #[inline(always)]
    pub(super) fn codes_of(
        &mut self,
        keys: &Keys,
        n: usize,
        failed: &Failed,
        codes: &mut Vec<u32>,
    ) {
        let mut found = [0; BATCH];
        for i in 0..n {
            if failed[i] == 0 {
                found[i] = self.code_of_key(keys.low[i], keys.high[i], keys.hash[i]);
            }
        }
        codes.extend_from_slice(&found[..n]);
    }

    #[inline(always)]
    fn code_of_key(&mut self, low: u64, high: u64, hash: u64) -> u32 {
        let mask = self.slots.len() - 1;
        // The table is at most half full, so the loop meets a free slot. The key of a free slot
        // equals that of the empty string, which is why the code is compared, too.
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.low == low && slot.high == high && slot.code != FREE {
                return slot.code;
            }
            if slot.code == FREE {
                return self.add_short(low, high, at);
            }
            at = (at + 1) & mask;
        }
    }

    /// The code of a string of any length, which is added if it is new.
    pub fn code_of(&mut self, string: &[u8]) -> u32 {
        if let Some((low, high)) = short_key(string) {
            return self.code_of_key(low, high, mix(low, high));
        }
        if let Some(&code) = self.long.get(string) {
            return code;
        }
        let code = self.append(string);
        self.long.insert(string.into(), code);
        self.long_bytes += string.len() + LONG_ENTRY;
        code
    }

    #[cold]
    #[inline(never)]
    fn add_short(&mut self, low: u64, high: u64, at: usize) -> u32 {
        let padded = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
        let len = padded.iter().position(|&byte| byte == 0).unwrap_or(SHORT);
        let code = self.append(&padded[..len]);
        self.slots[at] = Slot { low, high, code };
        if self.values as usize * 2 > self.slots.len() {
            self.grow();
        }
        code
    }

    fn grow(&mut self) {
        let bigger = vec![
            Slot {
                low: 0,
                high: 0,
                code: FREE
            };
            self.slots.len() * 4
        ];
        // Slots move to other places, and the codes in them stay the same.
        let old = std::mem::replace(&mut self.slots, bigger);
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.code != FREE) {
            let mut at = mix(slot.low, slot.high) as usize & mask;
            while self.slots[at].code != FREE {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }

    fn append(&mut self, string: &[u8]) -> u32 {
        let code = self.values;
        if code == 0 || string < self.least.as_slice() {
            self.least = string.to_vec();
        }
        if string > self.greatest.as_slice() {
            self.greatest = string.to_vec();
        }
        self.plain
            .extend_from_slice(&(string.len() as u32).to_le_bytes());
        self.plain.extend_from_slice(string);
        self.values += 1;
        code
    }

    /// The number of distinct strings.
    pub fn len(&self) -> usize {
        self.values as usize
    }

    /// Bytes of memory in use, or soon in use if the table is about to grow.
    pub fn heap_bytes(&self) -> usize {
        table_bytes::<Slot>(self.slots.len(), self.len()) + self.plain.capacity() + self.long_bytes
    }

    /// Whether the dictionary is empty.
    pub fn is_empty(&self) -> bool {
        self.values == 0
    }

    /// The strings in PLAIN encoding, in the order of their codes. It is only appended to.
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// The least and the greatest string, in byte order.
    pub fn bounds(&self) -> (&[u8], &[u8]) {
        (&self.least, &self.greatest)
    }

    /// The strings in the order of their codes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.plain.as_slice();
        std::iter::from_fn(move || {
            let (len, behind) = rest.split_first_chunk::<4>()?;
            let (string, behind) = behind.split_at(u32::from_le_bytes(*len) as usize);
            rest = behind;
            Some(string)
        })
    }
}

/// A dictionary of numbers in the order of their first appearance.
pub struct Numbers {
    slots: Vec<(u64, u32)>,
    values: Vec<u64>,
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers {
            slots: vec![(0, FREE); 1024],
            values: Vec::new(),
        }
    }
}

impl Numbers {
    /// Appends the codes of `numbers` to `codes`; a row that failed gets 0 and leaves nothing in
    /// the dictionary.
    #[inline(always)]
    pub(super) fn codes_of(&mut self, numbers: &[u64], failed: &Failed, codes: &mut Vec<u32>) {
        for (&number, &failed) in numbers.iter().zip(failed) {
            codes.push(if failed == 0 { self.code_of(number) } else { 0 });
        }
    }

    /// The code of `number`, which is added if it is new.
    #[inline(always)]
    pub fn code_of(&mut self, number: u64) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = mix(number, 0) as usize & mask;
        loop {
            let (known, code) = self.slots[at];
            if known == number && code != FREE {
                return code;
            }
            if code == FREE {
                return self.add(number, at);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, number: u64, at: usize) -> u32 {
        let code = self.values.len() as u32;
        self.values.push(number);
        self.slots[at] = (number, code);
        if self.values.len() * 2 > self.slots.len() {
            let bigger = vec![(0, FREE); self.slots.len() * 4];
            let old = std::mem::replace(&mut self.slots, bigger);
            let mask = self.slots.len() - 1;
            for slot in old.into_iter().filter(|slot| slot.1 != FREE) {
                let mut at = mix(slot.0, 0) as usize & mask;
                while self.slots[at].1 != FREE {
                    at = (at + 1) & mask;
                }
                self.slots[at] = slot;
            }
        }
        code
    }

    /// Bytes of memory in use, or soon in use if the table is about to grow.
    pub fn heap_bytes(&self) -> usize {
        table_bytes::<(u64, u32)>(self.slots.len(), self.values.len()) + self.values.capacity() * 8
    }

    /// The numbers in the order of their codes.
    pub fn values(&self) -> &[u64] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_the_bytes_of_short_strings(
            string in proptest::collection::vec(prop_oneof![9 => 1u8..=255, 1 => Just(0u8)], 0..20)
        ) {
            let mut padded = [0; SHORT];
            let expected = (string.len() <= SHORT && !string.contains(&0)).then(|| {
                padded[..string.len()].copy_from_slice(&string);
                let word = u128::from_le_bytes(padded);
                (word as u64, (word >> 64) as u64)
            });
            prop_assert_eq!(short_key(&string), expected);
        }
    }
}
