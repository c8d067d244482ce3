//! Strings to group numbers: what the codes of different files have in common.

/// Open addressing, short strings inside of the table itself.
///
/// A general map would own each key by itself; 100,000 allocations for each thread and query are
/// a visible part of a query of a tenth of a second, and so is a second or third miss of the
/// caches for each look-up.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Its length is a power of two; at most half of the places are taken.
    places: Vec<Place>,
    /// Where each string ends in `bytes`; it starts where the one before ends.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// The string with zeros behind it, or its first bytes.
    head: [u8; HEAD_BYTES],
    /// Its length, capped; one that is not above `HEAD_BYTES` says that `head` is the string.
    len: u32,
    /// The number plus 1; 0 is an empty place.
    number: u32,
}

/// All callsigns without a very long suffix fit, and a place has 32 bytes: half a cache line.
const HEAD_BYTES: usize = 24;

impl Names {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string with this number.
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(self.places.as_slice()) + self.ends.capacity() * 8 + self.bytes.capacity()
    }

    /// Makes room and touches the places where these hashes belong, so that they are on their way
    /// into the cache together.
    pub(crate) fn prepare(&mut self, hashes: impl ExactSizeIterator<Item = u64>) {
        while (self.ends.len() + hashes.len()) * 2 > self.places.len() {
            self.grow();
        }
        let mask = self.places.len() - 1;
        let touched = hashes.fold(0, |sum, hash| {
            sum ^ self.places[hash as usize & mask].number
        });
        std::hint::black_box(touched);
    }

    /// The number of a string with this [`Names::hash`], the next number when it is new. The
    /// hash went through [`Names::prepare`].
    pub(crate) fn number(&mut self, name: &[u8], hash: u64) -> usize {
        let head = head_of(name);
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let place = &self.places[at];
            if place.number == 0 {
                self.bytes.extend_from_slice(name);
                self.ends.push(self.bytes.len());
                // Numbers stay below 2^32: each takes 64 bytes here at least, and the memory
                // bound of a query ends it long before.
                let number = self.ends.len() as u32;
                self.places[at] = Place {
                    head,
                    len: capped(name.len()),
                    number,
                };
                return self.ends.len() - 1;
            }
            let number = (place.number - 1) as usize;
            if place.head == head
                && place.len == capped(name.len())
                && (name.len() <= HEAD_BYTES || self.get(number) == name)
            {
                return number;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let len = (self.places.len() * 2).max(1024);
        let mask = len - 1;
        let mut places = vec![Place::default(); len];
        for place in self.places.iter().filter(|place| place.number != 0) {
            let name = self.get((place.number - 1) as usize);
            let mut at = Self::hash(name) as usize & mask;
            while places[at].number != 0 {
                at = (at + 1) & mask;
            }
            places[at] = *place;
        }
        self.places = places;
    }

    /// Eight bytes at a step, multiplied and folded; callsigns are one or two steps.
    pub(crate) fn hash(name: &[u8]) -> u64 {
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
}

fn capped(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn head_of(name: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    let len = name.len().min(HEAD_BYTES);
    head[..len].copy_from_slice(&name[..len]);
    head
}

#[cfg(test)]
mod tests {
    use super::*;

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
