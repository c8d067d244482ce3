//! The graph of dependencies between transactions, and its strongly connected components (Tarjan
//! 1972).

use std::collections::VecDeque;

use crate::history::Key;

/// The reason for which one transaction comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The second replaced what the first wrote.
    Ww(Key),
    /// The second read what the first wrote.
    Wr(Key),
    /// The second replaced what the first read.
    Rw(Key),
    /// The first ended before a moment of real time.
    Ended,
    /// A moment comes before another, or before the second's beginning.
    Then,
}

/// The kinds of edges that a search may take. Edges between writes are always taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taking {
    pub wr: bool,
    pub rw: bool,
    pub time: bool,
}

impl Taking {
    fn takes(self, why: Why) -> bool {
        match why {
            Why::Ww(_) => true,
            Why::Wr(_) => self.wr,
            Why::Rw(_) => self.rw,
            Why::Ended | Why::Then => self.time,
        }
    }
}

/// A graph whose nodes are the transactions by place, and after them moments of real time.
#[derive(Debug)]
pub(super) struct Graph {
    out: Vec<Vec<(u32, Why)>>,
    /// Nodes with lower numbers are transactions, and all others are moments.
    pub transactions: usize,
}

/// A node, and the reason of the edge by which a path leaves it.
pub(super) type Step = (usize, Why);

impl Graph {
    pub fn new(transactions: usize) -> Self {
        Self {
            out: vec![Vec::new(); transactions],
            transactions,
        }
    }

    /// Adds a moment of real time, and returns its node.
    pub fn moment(&mut self) -> usize {
        self.out.push(Vec::new());
        self.out.len() - 1
    }

    pub fn link(&mut self, from: usize, to: usize, why: Why) {
        if from != to {
            self.out[from].push((to as u32, why));
        }
    }

    /// The edges that leave a node.
    pub fn edges(&self, node: usize) -> impl Iterator<Item = (usize, Why)> + '_ {
        self.out[node].iter().map(|&(to, why)| (to as usize, why))
    }

    /// The strongly connected component of each node when only some edges are taken. Components of
    /// one node have no number, because no cycle goes through them.
    pub fn parts(&self, taking: Taking) -> Vec<Option<u32>> {
        Tarjan::new(self, taking).run()
    }

    /// A shortest path from one node to another within a component, by breadth-first search. From a
    /// node to itself it is a shortest cycle.
    pub fn path(
        &self,
        from: usize,
        to: usize,
        taking: Taking,
        within: impl Fn(usize) -> bool,
    ) -> Option<Vec<Step>> {
        let mut reached_by: std::collections::HashMap<usize, Step> =
            std::collections::HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for (next, why) in self.edges(node) {
                if !taking.takes(why) || !within(next) || reached_by.contains_key(&next) {
                    continue;
                }
                reached_by.insert(next, (node, why));
                if next == to {
                    let mut steps = Vec::new();
                    let mut at = to;
                    loop {
                        let step = reached_by[&at];
                        steps.push(step);
                        at = step.0;
                        if at == from {
                            steps.reverse();
                            return Some(steps);
                        }
                    }
                }
                queue.push_back(next);
            }
        }
        None
    }
}

/// Tarjan's algorithm with a stack of its own, because histories are longer than the stack of a
/// thread is deep.
struct Tarjan<'g> {
    graph: &'g Graph,
    taking: Taking,
    index: Vec<u32>,
    low: Vec<u32>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    next: u32,
    parts: Vec<Option<u32>>,
    count: u32,
}

impl<'g> Tarjan<'g> {
    fn new(graph: &'g Graph, taking: Taking) -> Self {
        let nodes = graph.out.len();
        Self {
            graph,
            taking,
            index: vec![u32::MAX; nodes],
            low: vec![0; nodes],
            on_stack: vec![false; nodes],
            stack: Vec::new(),
            next: 0,
            parts: vec![None; nodes],
            count: 0,
        }
    }

    fn run(mut self) -> Vec<Option<u32>> {
        for root in 0..self.index.len() {
            if self.index[root] == u32::MAX {
                self.visit(root);
            }
        }
        self.parts
    }

    fn open(&mut self, node: usize) {
        (self.index[node], self.low[node]) = (self.next, self.next);
        self.next += 1;
        self.stack.push(node);
        self.on_stack[node] = true;
    }

    fn visit(&mut self, root: usize) {
        self.open(root);
        let mut calls = vec![(root, 0)];
        while let Some((node, at)) = calls.pop() {
            if let Some(&(to, why)) = self.graph.out[node].get(at) {
                // The call continues with the next edge after the callee has returned.
                calls.push((node, at + 1));
                let to = to as usize;
                if !self.taking.takes(why) {
                    continue;
                }
                if self.index[to] == u32::MAX {
                    self.open(to);
                    calls.push((to, 0));
                } else if self.on_stack[to] {
                    self.low[node] = self.low[node].min(self.index[to]);
                }
            } else {
                self.close(node);
                if let Some(&(parent, _)) = calls.last() {
                    self.low[parent] = self.low[parent].min(self.low[node]);
                }
            }
        }
    }

    fn close(&mut self, node: usize) {
        if self.low[node] != self.index[node] {
            return;
        }
        let alone = self.stack.last() == Some(&node);
        while let Some(member) = self.stack.pop() {
            self.on_stack[member] = false;
            if !alone {
                self.parts[member] = Some(self.count);
            }
            if member == node {
                break;
            }
        }
        self.count += u32::from(!alone);
    }
}
