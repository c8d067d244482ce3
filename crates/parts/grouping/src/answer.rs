//! What a scan has found.

use crate::domain::Domain;
use crate::found::Found;

/// All groups that at least one row fell into, in no order.
#[derive(Debug)]
pub struct Answer {
    found: Found,
    groups: Vec<usize>,
}

/// One group of an [`Answer`]: where its results are.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    found: &'a Found,
    at: usize,
}

impl Answer {
    pub(crate) fn new(found: Found) -> Self {
        let groups = found.held().collect();
        Self { found, groups }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The values of key `index`.
    pub fn domain(&self, index: usize) -> Option<&Domain> {
        self.found.domains.get(index)
    }

    /// How many keys a group has.
    pub fn keys(&self) -> usize {
        self.found.domains.len()
    }

    /// Group number `index`.
    pub fn group(&self, index: usize) -> Option<Group<'_>> {
        self.groups.get(index).map(|at| Group {
            found: &self.found,
            at: *at,
        })
    }

    /// The groups one by one.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = Group<'_>> {
        self.groups.iter().map(|at| Group {
            found: &self.found,
            at: *at,
        })
    }
}

impl Group<'_> {
    /// For each key the number of its value in the key's domain.
    pub fn keys(&self) -> impl Iterator<Item = u32> {
        self.found.tuple(self.at)
    }

    /// How many rows fell into the group.
    pub fn count(&self) -> u64 {
        self.found.totals.count(self.at)
    }

    /// The sum of value column `index`, of which sums are wanted.
    pub fn sum(&self, index: usize) -> i128 {
        self.found.totals.sum(index, self.at)
    }

    /// The least of value column `index`, of which that is wanted.
    pub fn least(&self, index: usize) -> i128 {
        self.found.totals.wide().columns[index].least(self.at)
    }

    /// The greatest of value column `index`, of which that is wanted.
    pub fn most(&self, index: usize) -> i128 {
        self.found.totals.wide().columns[index].most(self.at)
    }
}
