//! Count, sums and extremes of many groups, each an index.

use super::spec::ValueColumn;

/// Running results of groups `0..len`. A group that no row fell into has a count of 0.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) counts: Vec<u64>,
    /// One entry for each value column of the query.
    pub(super) columns: Vec<ColumnGroups>,
}

/// Results of one value column; a vector that nobody asked for stays empty.
#[derive(Debug, Default)]
pub(super) struct ColumnGroups {
    pub(super) sums: Vec<i128>,
    pub(super) least: Vec<i128>,
    pub(super) most: Vec<i128>,
    sum: bool,
    extremes: bool,
}

impl Groups {
    pub(super) fn new(values: &[ValueColumn]) -> Self {
        let columns = values
            .iter()
            .map(|value| ColumnGroups {
                sum: value.sum,
                extremes: value.extremes,
                ..ColumnGroups::default()
            })
            .collect();
        Self {
            counts: Vec::new(),
            columns,
        }
    }

    pub(super) fn resize(&mut self, len: usize) {
        self.counts.resize(len, 0);
        for column in &mut self.columns {
            if column.sum {
                column.sums.resize(len, 0);
            }
            if column.extremes {
                column.least.resize(len, i128::MAX);
                column.most.resize(len, i128::MIN);
            }
        }
    }

    /// Forgets all groups and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.counts.clear();
        for column in &mut self.columns {
            column.sums.clear();
            column.least.clear();
            column.most.clear();
        }
    }

    /// Adds group `from` of `other` to group `to`.
    pub(super) fn add(&mut self, to: usize, other: &Groups, from: usize) {
        self.counts[to] += other.counts[from];
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            if mine.sum {
                mine.sums[to] += theirs.sums[from];
            }
            if mine.extremes {
                mine.least[to] = mine.least[to].min(theirs.least[from]);
                mine.most[to] = mine.most[to].max(theirs.most[from]);
            }
        }
    }

    /// Counts one row for each code.
    pub(super) fn count_rows(&mut self, codes: &[u32]) {
        for code in codes {
            self.counts[*code as usize] += 1;
        }
    }

    /// Bytes that `len` groups take.
    pub(super) fn bytes(&self, len: usize) -> usize {
        let words: usize = self
            .columns
            .iter()
            .map(|column| 2 * usize::from(column.sum) + 4 * usize::from(column.extremes))
            .sum();
        len * 8 * (1 + words)
    }
}

impl ColumnGroups {
    /// Takes in one value for each code; `wide` says what a stored value means.
    pub(super) fn take(&mut self, codes: &[u32], values: &[i64], wide: impl Fn(i64) -> i128) {
        if self.sum {
            for (code, value) in codes.iter().zip(values) {
                self.sums[*code as usize] += wide(*value);
            }
        }
        if self.extremes {
            for (code, value) in codes.iter().zip(values) {
                let (at, value) = (*code as usize, wide(*value));
                self.least[at] = self.least[at].min(value);
                self.most[at] = self.most[at].max(value);
            }
        }
    }
}
