//! Numbers strings, so that codes of different files get numbers in common.

/// A hash table with open addressing that holds short strings itself.
///
/// A general map would own each key by itself. 100,000 allocations for each thread and query are a
/// visible part of a query that takes a tenth of a second, and so is a second or third cache miss
/// for each look-up.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The length is a power of two. At most five of eight slots are taken, so that a search soon
    /// ends at an empty one.
    slots: Vec<Slot>,
    /// Where each string ends in `bytes`. It starts where the one before ends.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The string with zeros behind it, or the first bytes of a longer one.
    head: u64,
    /// The length of the string, capped. Up to `HEAD_BYTES` the string is in `head` as a whole.
    len: u32,
    /// The number plus 1, or 0 in an empty slot.
    number: u32,
}

/// Bytes of a string that are in the table itself. Almost all callsigns fit, and a slot has 16
/// bytes, so that the slots of most tables fit into the second cache of a core.
const HEAD_BYTES: usize = size_of::<u64>();

impl Names {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of the string with this number.
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(self.slots.as_slice()) + self.ends.capacity() * 8 + self.bytes.capacity()
    }

    /// Makes room for as many strings, and touches the slots where these hashes belong, so that
    /// they are on their way into the cache together.
    pub(crate) fn prepare(&mut self, hashes: impl ExactSizeIterator<Item = u64>) {
        self.reserve(hashes.len());
        let mask = self.slots.len() - 1;
        let touched = hashes.fold(0, |sum, hash| sum ^ self.slots[hash as usize & mask].number);
        std::hint::black_box(touched);
    }

    /// The number of a string with this [`Names::hash`], which is the next number if the string is
    /// new. The caller has passed the hash to [`Names::prepare`] before.
    pub(crate) fn number(&mut self, name: &[u8], hash: u64) -> usize {
        let head = head_of(name);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.number == 0 {
                self.bytes.extend_from_slice(name);
                self.ends.push(self.bytes.len());
                // Numbers stay below 2^32, because each takes at least 32 bytes here and the bound
                // of memory ends a query long before.
                let number = self.ends.len() as u32;
                self.slots[at] = Slot {
                    head,
                    len: capped(name.len()),
                    number,
                };
                return self.ends.len() - 1;
            }
            // A short string is compared without leaving the table. Zeros behind it cannot make two
            // strings equal, because the lengths are compared too.
            let number = (slot.number - 1) as usize;
            if slot.head == head
                && slot.len == capped(name.len())
                && (name.len() <= HEAD_BYTES || self.get(number) == name)
            {
                return number;
            }
            at = (at + 1) & mask;
        }
    }

    /// Makes room for so many more strings.
    pub(crate) fn reserve(&mut self, more: usize) {
        let least = (self.ends.len() + more) * 8 / 5 + 1;
        if least <= self.slots.len() {
            return;
        }
        let len = least.next_power_of_two().max(1024);
        let mask = len - 1;
        let mut slots = vec![Slot::default(); len];
        for slot in self.slots.iter().filter(|slot| slot.number != 0) {
            let name = self.get((slot.number - 1) as usize);
            let mut at = Self::hash(name) as usize & mask;
            while slots[at].number != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = *slot;
        }
        self.slots = slots;
        self.ends.reserve(more);
        self.bytes.reserve(more * HEAD_BYTES);
    }

    /// Multiplies and folds eight bytes at a step. Most callsigns take one step.
    pub(crate) fn hash(name: &[u8]) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut state = name.len() as u64;
        for word in name.chunks(HEAD_BYTES) {
            let product = u128::from(state ^ head_of(word)) * u128::from(ODD);
            state = product as u64 ^ (product >> 64) as u64 ^ ODD;
        }
        state
    }
}

fn capped(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// The first `HEAD_BYTES` of a string, with zeros behind a shorter one.
///
/// A string that is shorter is read as two halves, which may overlap. Copying it would be a call
/// for its length, and then a wait until the copy can be read as one word.
fn head_of(name: &[u8]) -> u64 {
    if let Some(head) = name.first_chunk() {
        return u64::from_le_bytes(*head);
    }
    let (first, last, half) = match (name.first_chunk(), name.last_chunk()) {
        (Some(first), Some(last)) => (u32::from_le_bytes(*first), u32::from_le_bytes(*last), 4),
        _ => match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => (
                u16::from_le_bytes(*first).into(),
                u16::from_le_bytes(*last).into(),
                2,
            ),
            _ => return name.first().copied().unwrap_or_default().into(),
        },
    };
    u64::from(first) | u64::from(last) << (8 * (name.len() - half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_the_string_with_zeros_behind_it() {
        let text = b"K1ABC/P MM";
        for len in 0..=text.len() {
            let mut padded = [0; HEAD_BYTES];
            let head = len.min(HEAD_BYTES);
            padded[..head].copy_from_slice(&text[..head]);
            assert_eq!(head_of(&text[..len]), u64::from_le_bytes(padded), "{len}");
        }
    }

    #[test]
    fn numbers_follow_first_appearance() {
        let mut names = Names::default();
        let long = "long".repeat(9);
        let text: Vec<String> = (0..5000usize)
            .map(|i| format!("{}{}", if i % 7 == 0 { &long } else { "K" }, i * i % 3001))
            .collect();
        let mut seen: Vec<&str> = Vec::new();
        for name in text.iter().map(String::as_str).chain(["", "\0"]) {
            let expected = seen.iter().position(|s| *s == name).unwrap_or_else(|| {
                seen.push(name);
                seen.len() - 1
            });
            let hash = Names::hash(name.as_bytes());
            names.prepare(std::iter::once(hash));
            assert_eq!(names.number(name.as_bytes(), hash), expected);
            assert_eq!(names.get(expected), name.as_bytes());
        }
        assert_eq!(names.len(), seen.len());
    }
}
