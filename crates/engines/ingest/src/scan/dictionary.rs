//! Values to codes: one look-up for each field, no allocation once a value is known.

use std::collections::HashMap;

/// Longest string that the table itself holds.
const SHORT: usize = 16;

const FREE: u32 = u32::MAX;

/// Bytes of an entry of the map of long strings beside the string itself, with its free share.
const LONG_ENTRY: usize = 64;

/// Bytes of an open table with this many slots. One that is nearly as full as it may get counts
/// with the one four times as large that it is about to be moved to.
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
    /// Memory of `long`, in bytes.
    long_bytes: usize,
    /// The strings as a Parquet dictionary page holds them: length (4 bytes), bytes.
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

/// The first 16 bytes of `bytes[start..]` with those from `len` on cleared: strings of up to 16
/// bytes without a NUL as keys.
#[inline(always)]
pub(super) fn key(bytes: &[u8], start: usize, len: usize) -> (u64, u64) {
    let loaded: [u8; SHORT] = bytes[start..start + SHORT]
        .try_into()
        .expect("sixteen bytes");
    let word = u128::from_le_bytes(loaded);
    let unused = 8 * (SHORT - len.min(SHORT)) as u32;
    // Two half shifts, because a shift by 128 is undefined.
    let kept =
        word << (unused / 2) << (unused - unused / 2) >> (unused / 2) >> (unused - unused / 2);
    (kept as u64, (kept >> 64) as u64)
}

#[inline(always)]
fn hash(low: u64, high: u64) -> usize {
    let product =
        u128::from(low ^ 0x9e37_79b9_7f4a_7c15) * u128::from(high ^ 0xe703_7ed1_a0b4_28db);
    ((product >> 64) as u64 ^ product as u64) as usize
}

impl Strings {
    /// Code of the string with this key (see [`key`]).
    #[inline(always)]
    pub(super) fn code_of_key(&mut self, low: u64, high: u64) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = hash(low, high) & mask;
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

    /// Code of any string.
    pub fn code_of(&mut self, string: &[u8]) -> u32 {
        if string.len() <= SHORT && !string.contains(&0) {
            let mut padded = [0; SHORT];
            padded[..string.len()].copy_from_slice(string);
            let (low, high) = key(&padded, 0, string.len());
            return self.code_of_key(low, high);
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
        let old = std::mem::replace(&mut self.slots, bigger);
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.code != FREE) {
            let mut at = hash(slot.low, slot.high) & mask;
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

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.values as usize
    }

    /// Memory it holds, in bytes, or will hold while its table grows when that is near.
    pub fn heap_bytes(&self) -> usize {
        table_bytes::<Slot>(self.slots.len(), self.len()) + self.plain.capacity() + self.long_bytes
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.values == 0
    }

    /// The strings in PLAIN encoding, in the order of their codes; what was once there stays.
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Least and greatest string.
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
    /// Code of `number`.
    #[inline(always)]
    pub fn code_of(&mut self, number: u64) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = hash(number, 0) & mask;
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
                let mut at = hash(slot.0, 0) & mask;
                while self.slots[at].1 != FREE {
                    at = (at + 1) & mask;
                }
                self.slots[at] = slot;
            }
        }
        code
    }

    /// Memory it holds, in bytes, or will hold while its table grows when that is near.
    pub fn heap_bytes(&self) -> usize {
        table_bytes::<(u64, u32)>(self.slots.len(), self.values.len()) + self.values.capacity() * 8
    }

    /// The numbers in the order of their codes.
    pub fn values(&self) -> &[u64] {
        &self.values
    }
}
