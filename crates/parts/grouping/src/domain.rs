//! Numbers the values of one key.

use crate::names::Names;

/// The number of NULL in every domain.
pub(crate) const NULL: u32 = 0;
/// How many values are looked up together.
const BATCH: usize = 16;

/// The values of a key, which are numbered from 1 in the order of their appearance. 0 is NULL.
#[derive(Debug, Default)]
pub struct Domain {
    names: Names,
    /// For each value the upper 8 bits of its hash, by which groups are partitioned.
    tags: Vec<u8>,
}

impl Domain {
    /// One more than the highest number.
    pub fn size(&self) -> usize {
        self.names.len() + 1
    }

    /// The bytes of value `number`, or `None` for NULL.
    pub fn bytes(&self, number: u32) -> Option<&[u8]> {
        (number != NULL).then(|| self.names.get(number as usize - 1))
    }

    /// Value `number` as an integer. `None` for NULL, and for values that do not have eight bytes.
    pub fn int(&self, number: u32) -> Option<i64> {
        let bytes = self.bytes(number)?;
        bytes.try_into().ok().map(i64::from_le_bytes)
    }

    /// Eight bits that depend on nothing but the bytes of value `number`, so that they are the same
    /// on all threads.
    pub(crate) fn tag(&self, number: u32) -> u8 {
        let tag = (number as usize).checked_sub(1).map(|at| self.tags[at]);
        tag.unwrap_or_default()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.names.heap_bytes() + self.tags.capacity()
    }

    /// Makes room for so many more values.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.names.reserve(more);
        self.tags.reserve(more);
    }

    /// Calls `taken` with the number of each value, in order. New values get the next numbers.
    pub(crate) fn number<'v>(
        &mut self,
        values: impl Iterator<Item = Option<&'v [u8]>>,
        mut taken: impl FnMut(u32),
    ) {
        let mut values = values.peekable();
        while values.peek().is_some() {
            // The look-ups of a batch wait for memory at the same time, not one after the other.
            let mut batch: [(Option<&[u8]>, u64); BATCH] = [(None, 0); BATCH];
            let mut len = 0;
            for (slot, value) in batch.iter_mut().zip(values.by_ref().take(BATCH)) {
                *slot = (value, value.map_or(0, Names::hash));
                len += 1;
            }
            let batch = &batch[..len];
            self.names.prepare(batch.iter().map(|(_, hash)| *hash));
            for (value, hash) in batch {
                let Some(value) = value else {
                    taken(NULL);
                    continue;
                };
                let number = self.names.number(value, *hash);
                if number == self.tags.len() {
                    self.tags.push((hash >> 56) as u8);
                }
                taken(number as u32 + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_one_number_each_and_null_has_its_own() {
        let mut domain = Domain::default();
        let mut numbers = Vec::new();
        let seven = 7i64.to_le_bytes();
        let values = [
            Some(&b"K1ABC"[..]),
            None,
            Some(b""),
            Some(b"K1ABC"),
            Some(&seven),
        ];
        domain.number(values.into_iter(), |number| numbers.push(number));
        assert_eq!(numbers, [1, 0, 2, 1, 3]);
        assert_eq!(domain.size(), 4);
        assert_eq!(domain.bytes(0), None);
        assert_eq!(domain.bytes(2), Some(&b""[..]));
        assert_eq!(domain.int(3), Some(7));
        assert_eq!(domain.int(1), None);
    }
}
