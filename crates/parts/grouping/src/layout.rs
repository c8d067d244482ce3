//! Packs the numbers of several keys into one.

use crate::GroupError;

/// The most bits of combinations that are always indexes of arrays, however few rows there are.
const DENSE_BITS_LEAST: u32 = 12;
/// The most bits of combinations that can be indexes of arrays. Those of more bits go through a
/// hash table, however many rows there are.
const DENSE_BITS_MOST: u32 = 23;

/// How many bits each key has in a packed combination, the first key lowest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    widths: Vec<u32>,
    /// The most bits of a combination that is the index of an array.
    dense_bits: u32,
}

impl Layout {
    /// A layout for so many keys without values, of a scan over so many rows. An array has at most
    /// half as many elements as there are rows, because making it would otherwise cost more than it
    /// saves.
    pub(crate) fn empty(keys: usize, rows: u64) -> Self {
        let bits = u64::BITS - (rows / 2).leading_zeros();
        Self {
            widths: vec![0; keys],
            dense_bits: bits
                .saturating_sub(1)
                .clamp(DENSE_BITS_LEAST, DENSE_BITS_MOST),
        }
    }

    /// The layout with room for keys that have so many values each, and for more to come.
    pub(crate) fn for_sizes(&self, sizes: &[usize]) -> Result<Self, GroupError> {
        let dense_bits = self.dense_bits;
        let needed = || sizes.iter().map(|size| bits(*size));
        let total: u32 = needed().sum();
        if total > u64::BITS {
            return Err(GroupError::TooManyGroups {
                values: sizes.to_vec(),
            });
        }
        if total <= dense_bits || sizes.len() == 1 {
            return Ok(Self {
                widths: needed().collect(),
                dense_bits,
            });
        }
        // No array is as long as this, so all bits can be shared out among the keys. Most tables
        // then never need another layout.
        let mut spare = u64::BITS - total;
        let each = spare / sizes.len() as u32;
        let widths = needed()
            .map(|width| {
                let more = each.min(u32::BITS - width.min(u32::BITS)).min(spare);
                spare -= more;
                width + more
            })
            .collect();
        Ok(Self { widths, dense_bits })
    }

    /// Whether there is room for keys that have so many values each.
    pub(crate) fn holds(&self, sizes: impl Iterator<Item = usize>) -> bool {
        self.widths
            .iter()
            .zip(sizes)
            .all(|(width, size)| bits(size) <= *width)
    }

    /// Whether combinations are indexes of arrays. Those of a single key are, because its numbers
    /// have no gaps.
    pub(crate) fn is_dense(&self) -> bool {
        self.widths.len() == 1 || self.total() <= self.dense_bits
    }

    /// How many combinations there can be, if they are indexes of an array.
    pub(crate) fn dense_len(&self) -> usize {
        1usize.checked_shl(self.total()).unwrap_or(0)
    }

    /// By how many bits each key is shifted to the left.
    pub(crate) fn shifts(&self) -> impl Iterator<Item = u32> {
        self.widths.iter().scan(0, |at, width| {
            let shift = *at;
            *at += width;
            // A key without bits may stand behind 64 others. It adds nothing, whatever it is
            // shifted by, but a shift by 64 would overflow.
            Some(shift.min(u64::BITS - 1))
        })
    }

    pub(crate) fn pack(&self, numbers: impl Iterator<Item = u32>) -> u64 {
        self.shifts()
            .zip(numbers)
            .fold(0, |packed, (shift, number)| {
                packed | u64::from(number) << shift
            })
    }

    pub(crate) fn unpack(&self, packed: u64) -> impl Iterator<Item = u32> {
        self.fields()
            .map(move |(shift, mask)| (packed >> shift & mask) as u32)
    }

    /// By how many bits each key is shifted, and the mask of its bits.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (u32, u64)> {
        self.shifts().zip(&self.widths).map(|(shift, width)| {
            let mask = 1u64.checked_shl(*width).map_or(u64::MAX, |end| end - 1);
            (shift, mask)
        })
    }

    fn total(&self) -> u32 {
        self.widths.iter().sum()
    }
}

/// How many bits numbers below `size` take.
fn bits(size: usize) -> u32 {
    usize::BITS - size.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        for sizes in [
            vec![1],
            vec![2, 1, 3],
            vec![1 << 20],
            vec![1 << 17, 40_000, 25],
            vec![u32::MAX as usize, u32::MAX as usize],
            vec![1 << 32, 1 << 32, 1],
        ] {
            let layout = Layout::empty(sizes.len(), 1 << 20)
                .for_sizes(&sizes)
                .unwrap();
            assert!(layout.holds(sizes.iter().copied()));
            let highest: Vec<u32> = sizes.iter().map(|size| (size - 1) as u32).collect();
            let packed = layout.pack(highest.iter().copied());
            assert_eq!(layout.unpack(packed).collect::<Vec<_>>(), highest);
            if layout.is_dense() {
                assert!((packed as usize) < layout.dense_len());
            }
        }
        let empty = Layout::empty(3, 0);
        assert!(empty.for_sizes(&[1 << 32, 1 << 32, 2]).is_err());
        let layout = Layout::empty(1, 0).for_sizes(&[4]).unwrap();
        assert!(!layout.holds([5].into_iter()));
    }

    #[test]
    fn arrays_are_no_longer_than_the_rows_deserve() {
        let sizes = [1 << 10, 1 << 10];
        let dense = |rows| Layout::empty(2, rows).for_sizes(&sizes).unwrap().is_dense();
        assert!(!dense(1000));
        assert!(!dense((1 << 21) - 1));
        assert!(dense(1 << 21));
        assert!(Layout::empty(2, 0).for_sizes(&[64, 64]).unwrap().is_dense());
    }
}
