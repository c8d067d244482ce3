//! The groups that one thread has found.

use crate::GroupError;
use crate::domain::Domain;
use crate::layout::Layout;
use crate::part::{Part, Scratch};
use crate::totals::Totals;

/// How many parts groups are split into: one for each tag.
const PARTS: usize = 1 << u8::BITS;
/// From so many groups on they are split; fewer lie in a cache together.
const SPLIT_GROUPS: usize = 1 << 17;

/// Groups under combinations of numbers, one number of each key's domain.
///
/// Many groups are split into parts by a tag of their keys' values. Rows then wait until they are
/// worth fetching a part's memory for (radix partitioning: Manegold, Boncz, Kersten, "Optimizing
/// database architecture for the new bottleneck", VLDB Journal 9, 2000), and parts of several
/// threads are merged side by side, as a value has one tag in all of them.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) domains: Vec<Domain>,
    layout: Layout,
    /// One, or one for each tag.
    parts: Vec<Part>,
    /// From so many groups on they are split.
    pub(crate) split_groups: usize,
    scratch: Scratch,
    tags: Vec<u8>,
}

impl Found {
    /// Nothing yet, of a scan over so many rows.
    pub(crate) fn new(keys: usize, rows: u64, totals: Totals) -> Self {
        let layout = Layout::empty(keys, rows);
        Self {
            domains: (0..keys).map(|_| Domain::default()).collect(),
            parts: vec![Part::new(&layout, totals)],
            layout,
            split_groups: SPLIT_GROUPS,
            scratch: Scratch::default(),
            tags: Vec::new(),
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(crate) fn parts_mut(&mut self) -> (&Layout, &mut [Part]) {
        (&self.layout, &mut self.parts)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let domains: usize = self.domains.iter().map(Domain::heap_bytes).sum();
        domains + self.parts.iter().map(Part::heap_bytes).sum::<usize>()
    }

    /// The one part that all groups are in, while they are not split.
    pub(crate) fn whole(&mut self) -> Option<(&Layout, &mut Part)> {
        match self.parts.as_mut_slice() {
            [whole] => Some((&self.layout, whole)),
            _ => None,
        }
    }

    pub(crate) fn is_split(&self) -> bool {
        self.parts.len() > 1
    }

    /// Splits the groups when they have become too many for a cache.
    pub(crate) fn split_if_many(&mut self) {
        if let [whole] = self.parts.as_slice()
            && whole.numbered() >= self.split_groups
        {
            self.split();
        }
    }

    /// Splits the groups, whose layout is not dense.
    pub(crate) fn split(&mut self) {
        if self.is_split() {
            return;
        }
        let by_tag = self.by_tag();
        let Some(whole) = self.parts.pop() else {
            return;
        };
        let layout = &self.layout;
        let parts = by_tag.into_iter().map(|groups| {
            let mut part = Part::new(layout, whole.totals.fresh());
            part.take(layout, &whole, groups.into_iter(), |group| {
                whole.key(layout, group)
            });
            part
        });
        self.parts = parts.collect();
    }

    /// The groups of the whole for each tag.
    pub(crate) fn by_tag(&self) -> Vec<Vec<usize>> {
        let mut by_tag = vec![Vec::new(); PARTS];
        for whole in &self.parts {
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

    /// The tag of each packed combination.
    fn tag(&self, keys: &[u64], tags: &mut Vec<u8>) {
        tags.clear();
        tags.resize(keys.len(), 0);
        for (domain, (shift, mask)) in self.domains.iter().zip(self.layout.fields()) {
            for (tag, key) in tags.iter_mut().zip(keys) {
                // Turned, or two keys with the same values would cancel each other out.
                *tag = tag.rotate_left(3) ^ domain.tag((key >> shift & mask) as u32);
            }
        }
    }

    /// Lets rows wait for their groups, which are split. `columns` are the values of each value
    /// column.
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

    /// Rows of a length that the compiler knows are stored without a call.
    fn wait_rows<const N: usize>(&mut self, tags: &[u8], row: impl Fn(usize) -> [u64; N]) {
        for (at, tag) in tags.iter().enumerate() {
            self.wait_row(*tag, &row(at));
        }
    }

    #[inline]
    fn wait_row(&mut self, tag: u8, row: &[u64]) {
        let part = &mut self.parts[usize::from(tag)];
        if part.wait(row) {
            part.add_waiting(&self.layout, &mut self.scratch);
        }
    }

    /// Adds all rows that wait, after which none comes.
    pub(crate) fn finish(&mut self) {
        for part in &mut self.parts {
            part.finish(&self.layout, &mut self.scratch);
        }
    }

    /// Gives the combinations more bits when the domains have outgrown them.
    pub(crate) fn fit(&mut self) -> Result<(), GroupError> {
        if self.layout.holds(self.domains.iter().map(Domain::size)) {
            return Ok(());
        }
        let sizes: Vec<usize> = self.domains.iter().map(Domain::size).collect();
        let layout = self.layout.for_sizes(&sizes)?;
        let before = std::mem::replace(&mut self.layout, layout);
        // The numbers of a single key stay what they are.
        let same = before.is_dense() && self.layout.is_dense() && sizes.len() == 1;
        for part in &mut self.parts {
            if same {
                part.make_room(&self.layout);
            } else {
                part.add_waiting(&before, &mut self.scratch);
                part.lay_out(&before, &self.layout);
            }
        }
        Ok(())
    }
}
