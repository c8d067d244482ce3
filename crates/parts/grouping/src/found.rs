//! The groups that one thread has found, and how those of several become one.

use crate::GroupError;
use crate::domain::{Domain, NULL};
use crate::index::Index;
use crate::layout::Layout;
use crate::totals::Totals;

/// Groups added at a time.
const BATCH: usize = 1024;

/// Groups under combinations of numbers, one number of each key's domain.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) domains: Vec<Domain>,
    layout: Layout,
    /// Of combinations that are no index of an array.
    index: Index,
    pub(crate) totals: Totals,
}

impl Found {
    /// Nothing yet, of a scan over so many rows.
    pub(crate) fn new(keys: usize, rows: u64, totals: Totals) -> Self {
        let domains: Vec<Domain> = (0..keys).map(|_| Domain::default()).collect();
        let mut found = Self {
            layout: Layout::empty(keys, rows),
            domains,
            index: Index::default(),
            totals,
        };
        found.totals.resize(found.layout.dense_len());
        found
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let domains: usize = self.domains.iter().map(Domain::heap_bytes).sum();
        domains + self.index.heap_bytes() + self.totals.bytes(self.totals.len())
    }

    /// The groups of packed combinations, made where they are new.
    pub(crate) fn numbers(&mut self, keys: &[u64], numbers: &mut [u32]) {
        if self.layout.is_dense() {
            for (number, key) in numbers.iter_mut().zip(keys) {
                *number = *key as u32;
            }
        } else {
            self.index.numbers(keys, numbers);
            if self.index.len() > self.totals.len() {
                self.totals.resize(self.index.len().next_power_of_two());
            }
        }
    }

    /// Gives the combinations more bits when the domains have outgrown them.
    pub(crate) fn fit(&mut self) -> Result<(), GroupError> {
        if self.layout.holds(self.domains.iter().map(Domain::size)) {
            return Ok(());
        }
        let sizes: Vec<usize> = self.domains.iter().map(Domain::size).collect();
        let layout = self.layout.for_sizes(&sizes)?;
        if self.layout.is_dense() && layout.is_dense() && sizes.len() == 1 {
            // The numbers of a single key stay what they are.
            self.layout = layout;
            self.totals.resize(self.layout.dense_len());
            return Ok(());
        }
        let mut old = Found {
            domains: Vec::new(),
            index: std::mem::take(&mut self.index),
            totals: self.totals.fresh(),
            layout,
        };
        std::mem::swap(&mut old.layout, &mut self.layout);
        std::mem::swap(&mut old.totals, &mut self.totals);
        if self.layout.is_dense() {
            self.totals.resize(self.layout.dense_len());
        }
        let narrow = self.totals.is_narrow();
        self.take_groups(&old, |_, number| number);
        if narrow && !self.totals.is_narrow() {
            self.totals.narrow_again();
        }
        Ok(())
    }

    /// Adds what another thread has found.
    pub(crate) fn merge(&mut self, other: &Found) -> Result<(), GroupError> {
        let maps: Vec<Vec<u32>> = self
            .domains
            .iter_mut()
            .zip(&other.domains)
            .map(|(mine, theirs)| {
                let mut map = Vec::with_capacity(theirs.size());
                map.push(NULL);
                let values = (1..theirs.size() as u32).map(|number| theirs.bytes(number));
                mine.number(values, |number| map.push(number));
                map
            })
            .collect();
        self.fit()?;
        self.take_groups(other, |key, number| maps[key][number as usize]);
        Ok(())
    }

    /// The numbers of group `group`, one of each domain.
    pub(crate) fn tuple(&self, group: usize) -> impl Iterator<Item = u32> {
        let packed = if self.layout.is_dense() {
            group as u64
        } else {
            self.index.keys()[group]
        };
        self.layout.unpack(packed)
    }

    /// Groups that rows fell into.
    pub(crate) fn held(&self) -> impl Iterator<Item = usize> {
        let len = if self.layout.is_dense() {
            self.totals.len()
        } else {
            self.index.len()
        };
        (0..len).filter(|number| self.totals.holds(*number))
    }

    fn take_groups(&mut self, other: &Found, map: impl Fn(usize, u32) -> u32) {
        let slots = self.totals.takes_slots(&other.totals);
        if !slots {
            self.totals.widen();
        }
        let mut groups = other.held().peekable();
        let (mut from, mut keys, mut numbers) = (Vec::new(), Vec::new(), vec![0; BATCH]);
        while groups.peek().is_some() {
            from.clear();
            from.extend(groups.by_ref().take(BATCH));
            keys.clear();
            keys.extend(from.iter().map(|group| {
                let tuple = other.tuple(*group).enumerate();
                self.layout
                    .pack(tuple.map(|(key, number)| map(key, number)))
            }));
            self.numbers(&keys, &mut numbers[..from.len()]);
            for (from, to) in from.iter().zip(&numbers) {
                if slots {
                    self.totals.take_slot(*to as usize, &other.totals, *from);
                } else {
                    self.totals.take(*to as usize, &other.totals, *from);
                }
            }
        }
        if slots {
            self.totals.took_slots(&other.totals);
        }
    }
}
