//! Counts, sums and extremes of many groups, by their numbers.

use crate::query::ValueColumn;

/// The running results of groups `0..len`. A group that no row fell into has a count of 0.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) counts: Vec<u64>,
    /// One entry for each value column of the query.
    pub(crate) columns: Vec<ColumnGroups>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Wants {
    sum: bool,
    least: bool,
    most: bool,
}

/// The results of one value column. A vector that the query does not need stays empty.
#[derive(Debug, Default)]
pub(crate) struct ColumnGroups {
    pub(crate) sums: Vec<i128>,
    /// As signed integers. Unsigned ones are mapped to these in their order.
    least: Vec<i64>,
    most: Vec<i64>,
    wants: Wants,
    /// Whether stored values are the bits of unsigned integers of 64 bits.
    unsigned: bool,
}

impl Groups {
    /// `unsigned` says for each value column whether it has unsigned integers of 64 bits.
    pub(crate) fn new(values: &[ValueColumn], unsigned: &[bool]) -> Self {
        let columns = values
            .iter()
            .zip(unsigned)
            .map(|(value, unsigned)| ColumnGroups {
                wants: Wants {
                    sum: value.sum,
                    least: value.least,
                    most: value.most,
                },
                unsigned: *unsigned,
                ..ColumnGroups::default()
            })
            .collect();
        Self {
            counts: Vec::new(),
            columns,
        }
    }

    /// Makes results of the same kind without any group.
    pub(crate) fn fresh(&self) -> Self {
        let columns = self.columns.iter().map(|column| ColumnGroups {
            wants: column.wants,
            unsigned: column.unsigned,
            ..ColumnGroups::default()
        });
        Self {
            counts: Vec::new(),
            columns: columns.collect(),
        }
    }

    /// Makes room for groups below `len`. It never removes groups.
    pub(crate) fn resize(&mut self, len: usize) {
        if len <= self.counts.len() {
            return;
        }
        self.counts.resize(len, 0);
        for column in &mut self.columns {
            if column.wants.sum {
                column.sums.resize(len, 0);
            }
            if column.wants.least {
                column.least.resize(len, i64::MAX);
            }
            if column.wants.most {
                column.most.resize(len, i64::MIN);
            }
        }
    }

    /// Forgets all groups and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
        for column in &mut self.columns {
            column.sums.clear();
            column.least.clear();
            column.most.clear();
        }
    }

    /// Adds group `from` of `other` to group `to`.
    pub(crate) fn add(&mut self, to: usize, other: &Groups, from: usize) {
        self.counts[to] += other.counts[from];
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            if mine.wants.sum {
                mine.sums[to] += theirs.sums[from];
            }
            if mine.wants.least {
                mine.least[to] = mine.least[to].min(theirs.least[from]);
            }
            if mine.wants.most {
                mine.most[to] = mine.most[to].max(theirs.most[from]);
            }
        }
    }

    /// Counts one row for each number.
    pub(crate) fn count_rows(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.counts[*number as usize] += 1;
        }
    }

    /// How many bytes `len` groups take.
    pub(crate) fn bytes(&self, len: usize) -> usize {
        let words: usize = self
            .columns
            .iter()
            .map(|column| column.wants)
            .map(|wants| {
                2 * usize::from(wants.sum) + usize::from(wants.least) + usize::from(wants.most)
            })
            .sum();
        len * 8 * (1 + words)
    }
}

impl ColumnGroups {
    /// Adds one value to each of the groups, which may repeat.
    pub(crate) fn add(&mut self, numbers: &[u32], values: &[i64]) {
        // A loop for each result, so that what is wanted is not looked up for each row.
        if self.wants.sum && self.unsigned {
            for (number, value) in numbers.iter().zip(values) {
                self.sums[*number as usize] += i128::from(*value as u64);
            }
        } else if self.wants.sum {
            for (number, value) in numbers.iter().zip(values) {
                self.sums[*number as usize] += i128::from(*value);
            }
        }
        let flip = self.flip();
        if self.wants.least {
            for (number, value) in numbers.iter().zip(values) {
                let least = &mut self.least[*number as usize];
                *least = (*least).min(value ^ flip);
            }
        }
        if self.wants.most {
            for (number, value) in numbers.iter().zip(values) {
                let most = &mut self.most[*number as usize];
                *most = (*most).max(value ^ flip);
            }
        }
    }

    pub(crate) fn least(&self, group: usize) -> i128 {
        self.meant(self.least[group])
    }

    pub(crate) fn most(&self, group: usize) -> i128 {
        self.meant(self.most[group])
    }

    /// The mask that turns stored bits into signed integers of the same order, and back.
    fn flip(&self) -> i64 {
        if self.unsigned { i64::MIN } else { 0 }
    }

    fn meant(&self, ordered: i64) -> i128 {
        let stored = ordered ^ self.flip();
        if self.unsigned {
            i128::from(stored as u64)
        } else {
            i128::from(stored)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_values_keep_their_order_and_their_sum() {
        let value = ValueColumn {
            column: 0,
            sum: true,
            least: true,
            most: true,
        };
        let stored = [u64::MAX as i64, 3, i64::MAX, -5];
        for (unsigned, sum, least, most) in [
            (
                true,
                i128::from(u64::MAX) * 2 + i128::from(i64::MAX) - 1,
                3,
                i128::from(u64::MAX),
            ),
            (false, i128::from(i64::MAX) - 3, -5, i128::from(i64::MAX)),
        ] {
            let mut groups = Groups::new(&[value], &[unsigned]);
            groups.resize(2);
            groups.columns[0].add(&[1; 4], &stored);
            assert_eq!(groups.columns[0].sums, [0, sum]);
            assert_eq!(groups.columns[0].least(1), least);
            assert_eq!(groups.columns[0].most(1), most);
        }
    }
}
