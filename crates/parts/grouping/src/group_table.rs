//! The groups that one thread has found, partitioned when there are many.

use crate::GroupError;
use crate::domain::Domain;
use crate::layout::Layout;
use crate::partition::{Partition, Scratch};
use crate::totals::Totals;

/// How many partitions groups are split into, which is one for each tag.
const PARTITIONS: usize = 1 << u8::BITS;
/// The number of groups from which on they are split. Fewer fit into a cache together.
const SPLIT_GROUPS: usize = 1 << 17;

/// Groups by combinations of numbers, one of each key's domain.
///
/// Many groups are split into partitions by a tag of their keys' values. Rows then wait until they
/// are worth fetching a partition's memory for (radix partitioning: Manegold, Boncz, Kersten,
/// "Optimizing database architecture for the new bottleneck", VLDB Journal 9, 2000). Partitions of
/// several threads are merged in parallel, because a value has the same tag in all of them.
#[derive(Debug)]
pub(crate) struct GroupTable {
    pub(crate) domains: Vec<Domain>,
    layout: Layout,
    /// One partition of all groups, or one for each tag.
    partitions: Vec<Partition>,
    /// [`SPLIT_GROUPS`], which tests lower.
    pub(crate) split_groups: usize,
    scratch: Scratch,
    tags: Vec<u8>,
}

impl GroupTable {
    /// No groups yet, for a scan over so many rows.
    pub(crate) fn new(keys: usize, rows: u64, totals: Totals) -> Self {
        let layout = Layout::empty(keys, rows);
        Self {
            domains: (0..keys).map(|_| Domain::default()).collect(),
            partitions: vec![Partition::new(&layout, totals)],
            layout,
            split_groups: SPLIT_GROUPS,
            scratch: Scratch::default(),
            tags: Vec::new(),
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    pub(crate) fn partitions_mut(&mut self) -> (&Layout, &mut [Partition]) {
        (&self.layout, &mut self.partitions)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let domains: usize = self.domains.iter().map(Domain::heap_bytes).sum();
        domains
            + self
                .partitions
                .iter()
                .map(Partition::heap_bytes)
                .sum::<usize>()
    }

    /// The partition that all groups are in, or `None` if they are split.
    pub(crate) fn whole(&mut self) -> Option<(&Layout, &mut Partition)> {
        match self.partitions.as_mut_slice() {
            [whole] => Some((&self.layout, whole)),
            _ => None,
        }
    }

    pub(crate) fn is_split(&self) -> bool {
        self.partitions.len() > 1
    }

    /// Splits the groups if they have become too many for a cache.
    pub(crate) fn split_if_many(&mut self) {
        if let [whole] = self.partitions.as_slice()
            && whole.numbered() >= self.split_groups
        {
            self.split();
        }
    }

    /// Splits the groups. Their layout must not be dense, since a partition would then have room
    /// for the groups of all others too.
    pub(crate) fn split(&mut self) {
        if self.is_split() {
            return;
        }
        let by_tag = self.by_tag();
        let Some(whole) = self.partitions.pop() else {
            return;
        };
        let layout = &self.layout;
        let partitions = by_tag.into_iter().map(|groups| {
            let mut partition = Partition::new(layout, whole.totals.fresh());
            let groups = groups.into_iter();
            let groups = groups.map(|group| (group, whole.key(layout, group)));
            partition.add_groups(layout, &whole.totals, groups);
            partition
        });
        self.partitions = partitions.collect();
    }

    /// For each tag the groups that have it, of groups that are not split.
    pub(crate) fn by_tag(&self) -> Vec<Vec<usize>> {
        let mut by_tag = vec![Vec::new(); PARTITIONS];
        for whole in &self.partitions {
            let mut tags = Vec::new();
            let groups: Vec<usize> = whole.held(&self.layout).collect();
            let keys: Vec<u64> = groups
                .iter()
                .map(|group| whole.key(&self.layout, *group))
                .collect();
            self.tag(&keys, &mut tags);
            for (group, tag) in groups.into_iter().zip(tags) {
                by_tag[usize::from(tag)].push(group);
            }
        }
        by_tag
    }

    /// Fills `tags` with the tag of each packed combination.
    fn tag(&self, keys: &[u64], tags: &mut Vec<u8>) {
        tags.clear();
        tags.resize(keys.len(), 0);
        for (domain, (shift, mask)) in self.domains.iter().zip(self.layout.fields()) {
            for (tag, key) in tags.iter_mut().zip(keys) {
                // Rotated, because two keys with the same values would otherwise cancel each other.
                *tag = tag.rotate_left(3) ^ domain.tag((key >> shift & mask) as u32);
            }
        }
    }

    /// Queues rows for their partitions. `columns` has the values of each value column.
    pub(crate) fn wait(&mut self, keys: &[u64], columns: &[&[i64]]) {
        let mut tags = std::mem::take(&mut self.tags);
        self.tag(keys, &mut tags);
        match columns {
            [] => self.wait_rows(&tags, |at| [keys[at]]),
            [one] => self.wait_rows(&tags, |at| [keys[at], one[at] as u64]),
            _ => {
                let mut row = vec![0; 1 + columns.len()];
                for (at, (key, tag)) in keys.iter().zip(&tags).enumerate() {
                    row[0] = *key;
                    for (value, column) in row[1..].iter_mut().zip(columns) {
                        *value = column[at] as u64;
                    }
                    self.wait_row(*tag, &row);
                }
            }
        }
        self.tags = tags;
    }

    /// Queues rows of a length that the compiler knows, which are then stored without a call.
    fn wait_rows<const N: usize>(&mut self, tags: &[u8], row: impl Fn(usize) -> [u64; N]) {
        for (at, tag) in tags.iter().enumerate() {
            self.wait_row(*tag, &row(at));
        }
    }

    #[inline]
    fn wait_row(&mut self, tag: u8, row: &[u64]) {
        let partition = &mut self.partitions[usize::from(tag)];
        if partition.wait(row) {
            partition.add_waiting(&self.layout, &mut self.scratch);
        }
    }

    /// Adds all rows that wait. No more may come after that.
    pub(crate) fn finish(&mut self) {
        for partition in &mut self.partitions {
            partition.finish(&self.layout, &mut self.scratch);
        }
    }

    /// Gives combinations more bits if the domains have outgrown them.
    pub(crate) fn fit(&mut self) -> Result<(), GroupError> {
        if self.layout.holds(self.domains.iter().map(Domain::size)) {
            return Ok(());
        }
        let sizes: Vec<usize> = self.domains.iter().map(Domain::size).collect();
        let layout = self.layout.for_sizes(&sizes)?;
        let before = std::mem::replace(&mut self.layout, layout);
        // A single key is its own combination, so its groups stay where they are.
        let same = before.is_dense() && self.layout.is_dense() && sizes.len() == 1;
        for partition in &mut self.partitions {
            if same {
                partition.make_room(&self.layout);
            } else {
                // Rows that wait have combinations of the old layout.
                partition.add_waiting(&before, &mut self.scratch);
                partition.lay_out(&before, &self.layout);
            }
        }
        Ok(())
    }
}
