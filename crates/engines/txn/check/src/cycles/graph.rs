//! Dependencies between transactions, and the strongly connected parts of them (Tarjan 1972).

use std::collections::VecDeque;

use crate::history::Key;

/// Why one transaction comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The second replaced what the first wrote.
    Ww(Key),
    /// The second read what the first wrote.
    Wr(Key),
    /// The second replaced what the first read.
    Rw(Key),
    /// The first ended before a moment.
    Ended,
    /// A moment comes before another, or before the second's beginning. Free to take: its price was
    /// paid when the moment was entered.
    Then,
}

/// Which edges a search may take.
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

/// Transactions by place, then moments.
#[derive(Debug)]
pub(super) struct Graph {
    out: Vec<Vec<(u32, Why)>>,
    /// Nodes below are transactions.
    pub transactions: usize,
}

/// A node and the edge by which it is left.
pub(super) type Step = (usize, Why);

impl Graph {
    pub fn new(transactions: usize) -> Self {
        Self {
            out: vec![Vec::new(); transactions],
            transactions,
        }
    }

    /// A new moment.
    pub fn moment(&mut self) -> usize {
        self.out.push(Vec::new());
        self.out.len() - 1
    }

    pub fn link(&mut self, from: usize, to: usize, why: Why) {
        if from != to {
            self.out[from].push((to as u32, why));
        }
    }

    /// Edges that leave a node.
    pub fn edges(&self, node: usize) -> impl Iterator<Item = (usize, Why)> + '_ {
        self.out[node].iter().map(|&(to, why)| (to as usize, why))
    }

    /// The part that each node belongs to when only some edges are taken; parts of one node have no
    /// number.
    pub fn parts(&self, taking: Taking) -> Vec<Option<u32>> {
        Tarjan::new(self, taking).run()
    }

    /// A shortest path from one node to another within a part.
    pub fn path(
        &self,
        from: usize,
        to: usize,
        taking: Taking,
        within: impl Fn(usize) -> bool,
    ) -> Option<Vec<Step>> {
        let mut came: std::collections::HashMap<usize, Step> = std::collections::HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for (next, why) in self.edges(node) {
                if !taking.takes(why) || !within(next) || came.contains_key(&next) {
                    continue;
                }
                came.insert(next, (node, why));
                if next == to {
                    let mut steps = Vec::new();
                    let mut at = to;
                    loop {
                        let step = came[&at];
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

/// The algorithm with a stack of its own: histories are longer than a thread's stack is deep.
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
