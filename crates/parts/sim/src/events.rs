//! What will happen, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Things with the time at which they happen. Of two at the same time the earlier pushed comes
/// first.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    pushed: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at_ns: u64,
    number: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// A queue in which nothing will happen.
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            pushed: 0,
        }
    }

    /// `event` happens at `at_ns`. Returns its number.
    pub fn push(&mut self, at_ns: u64, event: E) -> u64 {
        let number = self.pushed;
        self.pushed += 1;
        self.heap.push(Reverse(Entry {
            at_ns,
            number,
            event,
        }));
        number
    }

    /// What happens next: its time, its number, itself.
    pub fn pop(&mut self) -> Option<(u64, u64, E)> {
        let Reverse(entry) = self.heap.pop()?;
        Some((entry.at_ns, entry.number, entry.event))
    }

    /// The time at which something happens next.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at_ns)
    }

    /// How many things will happen.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing will happen any more.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Entry<E> {
    fn order(&self) -> (u64, u64) {
        (self.at_ns, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}
