//! The deleted rows of one table in the order of their keys, each with the timestamp of its
//! deletion.
//!
//! A scan at timestamp `s` sees a deleted row only if the row was deleted after `s`. Rows that were
//! deleted before must not cost the scan anything, however many there are and wherever they lie: a
//! queue whose oldest entries are taken out has all of its deleted rows before the first living
//! one. So this is a treap (a binary tree in the order of keys that random priorities keep
//! balanced; Seidel and Aragon, "Randomized Search Trees", 1996) in which each node also knows the
//! newest deletion of its subtree. A scan passes over a subtree whose newest deletion it does not
//! ask for, and so visits O(log n) nodes for each row that it finds.

use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds};

use dyno_txn_api::{Direction, Timestamp};

use super::order::OrderKey;
use super::{Slot, index};

/// The link of a node that has no child on this side.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Node {
    key: OrderKey,
    slot: Slot,
    /// The timestamp of the deletion.
    deleted: Timestamp,
    /// The newest `deleted` of this node and all below it.
    newest: Timestamp,
    /// A parent's priority is not below its children's.
    priority: u32,
    left: u32,
    right: u32,
}

#[derive(Debug)]
pub(super) struct Deleted {
    nodes: Vec<Node>,
    root: u32,
    /// Indexes in `nodes` that are free.
    free: Vec<u32>,
}

/// What a scan asks for, and what it has found so far.
pub(super) struct Search<'a> {
    pub bounds: (Bound<OrderKey>, Bound<OrderKey>),
    pub direction: Direction,
    /// Only rows deleted after this.
    pub after: Timestamp,
    /// The search ends when it has found this many rows.
    pub most: usize,
    pub found: Vec<(&'a OrderKey, Slot)>,
    /// Nodes that were visited.
    pub visited: usize,
}

impl Deleted {
    pub fn new() -> Self {
        Self {
            nodes: Vec::new(),
            root: NONE,
            free: Vec::new(),
        }
    }

    /// Adds a row that is not there yet.
    pub fn insert(&mut self, key: OrderKey, slot: Slot, deleted: Timestamp, seed: u64) {
        let (left, right) = self.split(self.root, &key);
        let node = Node {
            key,
            slot,
            deleted,
            newest: deleted,
            priority: priority(seed, slot, deleted),
            left: NONE,
            right: NONE,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        let with = self.merge(left, at);
        self.root = self.merge(with, right);
    }

    /// Removes a row, if it is there.
    pub fn remove(&mut self, key: &OrderKey) {
        self.root = self.remove_below(self.root, key);
        if self.root == NONE {
            // This is how a burst of deletions usually ends, so its memory is freed.
            *self = Self::new();
        }
    }

    /// Finds rows in the order that the search asks for.
    pub fn search<'a>(&'a self, search: &mut Search<'a>) {
        self.search_below(self.root, search);
    }

    fn search_below<'a>(&'a self, at: u32, search: &mut Search<'a>) {
        let Some(node) = self.nodes.get(at as usize) else {
            return;
        };
        if node.newest <= search.after || search.found.len() == search.most {
            return;
        }
        search.visited += 1;
        let (low, high) = &search.bounds;
        // A child is left out where all of its keys lie beyond the bound on its side.
        let above_low = (low.as_ref(), Bound::Unbounded).contains(&node.key);
        let below_high = (Bound::Unbounded, high.as_ref()).contains(&node.key);
        let (first, second) = match search.direction {
            Direction::Forward => ((above_low, node.left), (below_high, node.right)),
            Direction::Backward => ((below_high, node.right), (above_low, node.left)),
        };
        if first.0 {
            self.search_below(first.1, search);
        }
        let asked = above_low && below_high && node.deleted > search.after;
        if asked && search.found.len() < search.most {
            search.found.push((&node.key, node.slot));
        }
        if second.0 {
            self.search_below(second.1, search);
        }
    }

    /// Splits a subtree into the keys before `key` and the others.
    fn split(&mut self, at: u32, key: &OrderKey) -> (u32, u32) {
        let Some(node) = self.nodes.get(at as usize) else {
            return (NONE, NONE);
        };
        let (left, right) = (node.left, node.right);
        if node.key < *key {
            let (middle, behind) = self.split(right, key);
            self.nodes[at as usize].right = middle;
            self.renew(at);
            (at, behind)
        } else {
            let (before, middle) = self.split(left, key);
            self.nodes[at as usize].left = middle;
            self.renew(at);
            (before, at)
        }
    }

    /// Merges two trees, where all keys of the first are before those of the second.
    fn merge(&mut self, first: u32, second: u32) -> u32 {
        let (Some(a), Some(b)) = (
            self.nodes.get(first as usize),
            self.nodes.get(second as usize),
        ) else {
            return if first == NONE { second } else { first };
        };
        let (a_right, b_left) = (a.right, b.left);
        if a.priority >= b.priority {
            self.nodes[first as usize].right = self.merge(a_right, second);
            self.renew(first);
            first
        } else {
            self.nodes[second as usize].left = self.merge(first, b_left);
            self.renew(second);
            second
        }
    }

    /// Removes a key from a subtree, and returns the new root.
    fn remove_below(&mut self, at: u32, key: &OrderKey) -> u32 {
        let Some(node) = self.nodes.get(at as usize) else {
            return NONE;
        };
        let (left, right) = (node.left, node.right);
        match key.cmp(&node.key) {
            Ordering::Equal => {
                self.free.push(at);
                return self.merge(left, right);
            }
            Ordering::Less => self.nodes[at as usize].left = self.remove_below(left, key),
            Ordering::Greater => self.nodes[at as usize].right = self.remove_below(right, key),
        }
        self.renew(at);
        at
    }

    /// Computes a node's newest deletion from its own and those of its children.
    fn renew(&mut self, at: u32) {
        let node = &self.nodes[at as usize];
        let below = |child: u32| self.nodes.get(child as usize).map_or(0, |node| node.newest);
        let newest = node.deleted.max(below(node.left)).max(below(node.right));
        self.nodes[at as usize].newest = newest;
    }
}

/// A priority that clients cannot choose. If they could, they could turn the tree into a list.
fn priority(seed: u64, slot: Slot, deleted: Timestamp) -> u32 {
    index::hash(seed, slot, &deleted.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn key(number: u32) -> OrderKey {
        OrderKey::new(&number.to_be_bytes())
    }

    fn search(
        rows: &Deleted,
        range: (u32, u32),
        after: Timestamp,
        most: usize,
    ) -> (Vec<Slot>, usize) {
        let mut search = Search {
            bounds: (Bound::Included(key(range.0)), Bound::Excluded(key(range.1))),
            direction: Direction::Forward,
            after,
            most,
            found: Vec::new(),
            visited: 0,
        };
        rows.search(&mut search);
        let found = search.found.iter().map(|(_, slot)| *slot);
        (found.collect(), search.visited)
    }

    #[test]
    fn it_finds_what_a_map_finds() {
        let mut random = dyno_sim::Random::new(11);
        let (mut rows, mut model) = (Deleted::new(), BTreeMap::new());
        for timestamp in 1..6_000u64 {
            let number = random.below(300) as u32;
            match model.remove(&number) {
                Some(_) => rows.remove(&key(number)),
                None => {
                    rows.insert(key(number), number, timestamp, 5);
                    model.insert(number, timestamp);
                }
            }
            let (low, after) = (random.below(300) as u32, timestamp - timestamp.min(100));
            let high = low + random.below(100) as u32;
            let wanted = model.range(low..high).filter(|(_, at)| **at > after);
            let wanted: Vec<Slot> = wanted.map(|(number, _)| *number).take(20).collect();
            assert_eq!(search(&rows, (low, high), after, 20).0, wanted);
        }
        for number in model.into_keys() {
            rows.remove(&key(number));
        }
        assert!(rows.nodes.is_empty() && rows.free.is_empty());
    }

    #[test]
    fn a_search_visits_what_it_finds_and_a_path_to_it() {
        let mut rows = Deleted::new();
        // As a queue is emptied: in the order of the keys, and of time.
        for number in 0..200_000u32 {
            rows.insert(key(number), number, u64::from(number) + 1, 5);
        }
        assert_eq!(search(&rows, (0, 200_000), 200_000, 64), (Vec::new(), 0));
        let (found, visited) = search(&rows, (0, 200_000), 199_999, 64);
        assert_eq!(found, [199_999]);
        assert!(visited < 100, "{visited} nodes");
        let (found, visited) = search(&rows, (0, 200_000), 0, 64);
        assert_eq!(found, (0..64).collect::<Vec<_>>());
        assert!(visited < 200, "{visited} nodes");
    }
}
