//! The answer of a scan, which is its groups with their results.

use crate::domain::Domain;
use crate::group_table::GroupTable;
use crate::partition::Partition;

/// All groups that at least one row fell into, in no order.
#[derive(Debug)]
pub struct Answer {
    table: GroupTable,
    groups: Vec<Location>,
}

/// The partition that a group is in, and its number there.
#[derive(Debug, Clone, Copy)]
struct Location {
    partition: u32,
    at: u32,
}

/// One group of an [`Answer`], which reads its results from there.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    table: &'a GroupTable,
    location: Location,
}

impl Answer {
    pub(crate) fn new(table: GroupTable) -> Self {
        let layout = table.layout();
        // One allocation of all that can be there. Groups are found again by eight bytes each,
        // because copying their results would need as much memory again.
        let most = table
            .partitions()
            .iter()
            .map(|partition| partition.places(layout))
            .sum();
        let mut groups = Vec::with_capacity(most);
        for (partition, held) in (0..).zip(table.partitions()) {
            let held = held.held(layout);
            groups.extend(held.map(|at| Location {
                partition,
                at: at as u32,
            }));
        }
        Self { table, groups }
    }

    /// The number of groups that at least one row fell into.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether no row fell into any group.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The values of key `index`, or `None` if the query has fewer keys.
    pub fn domain(&self, index: usize) -> Option<&Domain> {
        self.table.domains.get(index)
    }

    /// The number of keys that each group has.
    pub fn keys(&self) -> usize {
        self.table.domains.len()
    }

    /// Group number `index`, or `None` if there are fewer.
    pub fn group(&self, index: usize) -> Option<Group<'_>> {
        self.groups.get(index).map(|location| Group {
            table: &self.table,
            location: *location,
        })
    }

    /// All groups, in the order of [`Answer::group`].
    pub fn groups(&self) -> impl ExactSizeIterator<Item = Group<'_>> {
        self.groups.iter().map(|location| Group {
            table: &self.table,
            location: *location,
        })
    }
}

impl Group<'_> {
    /// For each key the number of its value in [`Answer::domain`].
    pub fn keys(&self) -> impl Iterator<Item = u32> {
        let layout = self.table.layout();
        layout.unpack(self.partition().key(layout, self.at()))
    }

    /// How many rows fell into the group.
    pub fn count(&self) -> u64 {
        self.partition().totals.count(self.at())
    }

    /// The sum of value column `index`. It has no meaning if the query wants no sum of it.
    pub fn sum(&self, index: usize) -> i128 {
        self.partition().totals.sum(index, self.at())
    }

    /// The least value of value column `index`.
    ///
    /// # Panics
    /// When the query does not want it.
    pub fn least(&self, index: usize) -> i128 {
        self.partition().totals.wide().columns[index].least(self.at())
    }

    /// The greatest value of value column `index`.
    ///
    /// # Panics
    /// When the query does not want it.
    pub fn most(&self, index: usize) -> i128 {
        self.partition().totals.wide().columns[index].most(self.at())
    }

    fn partition(&self) -> &Partition {
        &self.table.partitions()[self.location.partition as usize]
    }

    fn at(&self) -> usize {
        self.location.at as usize
    }
}
