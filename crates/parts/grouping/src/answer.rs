//! What a scan has found.

use crate::domain::Domain;
use crate::found::Found;
use crate::part::Part;

/// All groups that at least one row fell into, in no order.
#[derive(Debug)]
pub struct Answer {
    found: Found,
    groups: Vec<Place>,
}

/// Where a group is.
#[derive(Debug, Clone, Copy)]
struct Place {
    part: u32,
    at: u32,
}

/// One group of an [`Answer`]: where its results are.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    found: &'a Found,
    place: Place,
}

impl Answer {
    pub(crate) fn new(found: Found) -> Self {
        let layout = found.layout();
        let most = found.parts().iter().map(|part| part.places(layout)).sum();
        let mut groups = Vec::with_capacity(most);
        for (part, held) in (0..).zip(found.parts()) {
            let held = held.held(layout);
            groups.extend(held.map(|at| Place {
                part,
                at: at as u32,
            }));
        }
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
        self.groups.get(index).map(|place| Group {
            found: &self.found,
            place: *place,
        })
    }

    /// The groups one by one.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = Group<'_>> {
        self.groups.iter().map(|place| Group {
            found: &self.found,
            place: *place,
        })
    }
}

impl Group<'_> {
    /// For each key the number of its value in the key's domain.
    pub fn keys(&self) -> impl Iterator<Item = u32> {
        let layout = self.found.layout();
        layout.unpack(self.part().key(layout, self.at()))
    }

    /// How many rows fell into the group.
    pub fn count(&self) -> u64 {
        self.part().totals.count(self.at())
    }

    /// The sum of value column `index`, of which sums are wanted.
    pub fn sum(&self, index: usize) -> i128 {
        self.part().totals.sum(index, self.at())
    }

    /// The least of value column `index`, of which that is wanted.
    pub fn least(&self, index: usize) -> i128 {
        self.part().totals.wide().columns[index].least(self.at())
    }

    /// The greatest of value column `index`, of which that is wanted.
    pub fn most(&self, index: usize) -> i128 {
        self.part().totals.wide().columns[index].most(self.at())
    }

    fn part(&self) -> &Part {
        &self.found.parts()[self.place.part as usize]
    }

    fn at(&self) -> usize {
        self.place.at as usize
    }
}
