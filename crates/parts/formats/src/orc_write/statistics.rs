//! Statistics of a column, of an index stride, a stripe or the file (specification v1, "Column
//! Statistics").

use super::protobuf::{bytes, message, sint, uint};
use crate::vectorised::{Work, vectorised};

/// Statistics of the values of a column in a stride, a stripe or the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Statistics {
    pub(super) count: u64,
    pub(super) bounds: Bounds,
}

/// The least value, the greatest, and their sum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Bounds {
    /// There are no values yet, or the column is the root, which has none.
    #[default]
    None,
    Integer(Range),
    Date(Range),
    Decimal {
        range: Range,
        scale: u8,
    },
    Text {
        least: Vec<u8>,
        most: Vec<u8>,
        /// Bytes of all values together, which readers call their sum.
        bytes: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) least: i64,
    pub(super) most: i64,
    pub(super) sum: i128,
}

impl Range {
    /// The range of no values, to which others can be merged.
    pub(super) const EMPTY: Range = Range {
        least: i64::MAX,
        most: i64::MIN,
        sum: 0,
    };

    /// The range of values, summed group by group in 64 bits where that cannot overflow, because
    /// additions of 128 bits are not vectorised.
    pub(super) fn from_values<T: Copy + Into<i64>>(values: &[T]) -> Range {
        const GROUP: usize = 1024;
        let mut range = Range::EMPTY;
        for group in values.chunks(GROUP) {
            let (least, most, sum) = vectorised(Extremes(group));
            // The sum above has wrapped if values are so far from 0 that a whole group of them
            // could leave 64 bits; then it is taken once more.
            const SAFE: i64 = i64::MAX / GROUP as i64;
            let sum = if least >= -SAFE && most <= SAFE {
                i128::from(sum)
            } else {
                group.iter().map(|&value| i128::from(value.into())).sum()
            };
            range.merge(&Range { least, most, sum });
        }
        range
    }

    pub(super) fn merge(&mut self, other: &Range) {
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.sum += other.sum;
    }
}

/// Computes the least of some values, the greatest, and their sum in 64 bits, which may have
/// wrapped around.
struct Extremes<'a, T>(&'a [T]);

impl<T: Copy + Into<i64>> Work for Extremes<'_, T> {
    type Output = (i64, i64, i64);

    #[inline(always)]
    fn work(self) -> Self::Output {
        let (mut least, mut most, mut sum) = (i64::MAX, i64::MIN, 0i64);
        for &value in self.0 {
            let value = value.into();
            least = least.min(value);
            most = most.max(value);
            sum = sum.wrapping_add(value);
        }
        (least, most, sum)
    }
}

impl Statistics {
    /// Statistics of rows as such, which have a count and nothing else.
    pub(super) fn rows(count: u64) -> Statistics {
        Statistics {
            count,
            bounds: Bounds::None,
        }
    }

    /// Adds the values of `other`, which are of the same column.
    pub(super) fn merge(&mut self, other: &Statistics) {
        self.count += other.count;
        match (&mut self.bounds, &other.bounds) {
            (_, Bounds::None) => {}
            (mine @ Bounds::None, theirs) => *mine = theirs.clone(),
            (Bounds::Integer(mine), Bounds::Integer(theirs))
            | (Bounds::Date(mine), Bounds::Date(theirs))
            | (Bounds::Decimal { range: mine, .. }, Bounds::Decimal { range: theirs, .. }) => {
                mine.merge(theirs);
            }
            (Bounds::Text { least, most, bytes }, Bounds::Text { .. }) => {
                if let Bounds::Text {
                    least: their_least,
                    most: their_most,
                    bytes: their_bytes,
                } = &other.bounds
                {
                    if their_least < least {
                        least.clone_from(their_least);
                    }
                    if their_most > most {
                        most.clone_from(their_most);
                    }
                    *bytes += their_bytes;
                }
            }
            (mine, theirs) => unreachable!("statistics of two columns: {mine:?} and {theirs:?}"),
        }
    }

    /// Appends them as a message `ColumnStatistics`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        uint(out, 1, self.count);
        match &self.bounds {
            Bounds::None => {}
            Bounds::Integer(range) => message(out, 2, |out| {
                sint(out, 1, range.least);
                sint(out, 2, range.most);
                // The specification says to leave out a sum that does not fit into 64 bits.
                if let Ok(sum) = i64::try_from(range.sum) {
                    sint(out, 3, sum);
                }
            }),
            Bounds::Date(range) => message(out, 7, |out| {
                sint(out, 1, range.least);
                sint(out, 2, range.most);
            }),
            Bounds::Decimal { range, scale } => message(out, 6, |out| {
                bytes(out, 1, decimal(range.least.into(), *scale).as_bytes());
                bytes(out, 2, decimal(range.most.into(), *scale).as_bytes());
                bytes(out, 3, decimal(range.sum, *scale).as_bytes());
            }),
            Bounds::Text {
                least,
                most,
                bytes: total,
            } => message(out, 4, |out| {
                bytes(out, 1, least);
                bytes(out, 2, most);
                sint(out, 3, *total as i64);
            }),
        }
        // No column has a null.
        uint(out, 10, 0);
    }
}

/// A decimal as text, with all digits of its scale.
fn decimal(units: i128, scale: u8) -> String {
    let sign = if units < 0 { "-" } else { "" };
    let units = units.unsigned_abs();
    if scale == 0 {
        return format!("{sign}{units}");
    }
    let one = 10u128.pow(scale.into());
    let places = usize::from(scale);
    format!("{sign}{}.{:0places$}", units / one, units % one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_print_all_digits() {
        assert_eq!(decimal(-5, 2), "-0.05");
        assert_eq!(decimal(12345, 2), "123.45");
        assert_eq!(decimal(7, 0), "7");
    }

    #[test]
    fn sums_beyond_64_bits_are_left_out() {
        let range = Range::from_values(&[i64::MAX, i64::MAX]);
        assert_eq!(range.sum, 2 * i128::from(i64::MAX));
        let mut out = Vec::new();
        let statistics = Statistics {
            count: 2,
            bounds: Bounds::Integer(range),
        };
        statistics.write(&mut out);
        assert_eq!(out.len(), 2 + 2 + 2 * 11 + 2);
    }
}
