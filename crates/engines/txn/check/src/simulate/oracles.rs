//! Who gives stamps: the server itself, or one of two nodes, of which the other takes over.

use std::sync::{Arc, Mutex, PoisonError};

use dyno_sim::NodeId;
use dyno_txn_api::{Code, Error, Stamp};
use dyno_txn_core::Stamps;
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::oracle::{Clock, Oracle};

/// How far the bound of an oracle within the server goes beyond its time.
const WINDOW_NS: u64 = 300_000_000;

/// Oracles on nodes of their own.
pub(super) struct Oracles {
    pub nodes: Vec<NodeId>,
    machines: Vec<Option<Oracle>>,
    partitions: u32,
    epoch: u64,
    /// Whom clients ask.
    pub active: usize,
}

impl Oracles {
    /// The first of these nodes serves.
    pub fn new(nodes: Vec<NodeId>, partitions: u32) -> Self {
        let mut oracles = Self {
            machines: nodes.iter().map(|_| None).collect(),
            nodes,
            partitions,
            epoch: 0,
            active: 0,
        };
        if !oracles.nodes.is_empty() {
            oracles.take_over(0);
        }
        oracles
    }

    /// Who steers the cluster makes an oracle the active one; the one before may not know it yet.
    pub fn take_over(&mut self, number: usize) {
        self.epoch += 1;
        self.machines[number] = Some(Oracle::new(self.epoch, 0..self.partitions));
        self.active = number;
    }

    pub fn crash(&mut self, node: NodeId) {
        if let Some(number) = self.nodes.iter().position(|&other| other == node) {
            self.machines[number] = None;
        }
    }

    /// Whether the active one is gone, or knows that it is not the active one any more.
    pub fn is_headless(&self) -> bool {
        self.machines[self.active]
            .as_ref()
            .is_none_or(Oracle::is_deposed)
    }

    pub fn tick(&mut self, number: usize, now: u64, wall: u64) -> Vec<(Address, Message)> {
        let mut sends = Vec::new();
        if let Some(oracle) = &mut self.machines[number] {
            oracle.tick(now, wall, &mut sends);
        }
        sends
    }

    pub fn handle(
        &mut self,
        number: usize,
        (now, wall): (u64, u64),
        from: Address,
        message: Message,
    ) -> Vec<(Address, Message)> {
        let mut sends = Vec::new();
        if let Some(oracle) = &mut self.machines[number] {
            oracle.handle(now, wall, from, message, &mut sends);
        }
        sends
    }
}

/// The oracle within the server, shared with its partitions.
#[derive(Debug, Clone)]
pub(super) struct Local(Arc<Mutex<(Clock, u64)>>);

impl Local {
    /// It gives nothing until it knows above what.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new((Clock::new(0, 0), 0))))
    }

    fn with<T>(&self, act: impl FnOnce(&mut (Clock, u64)) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives stamps above `last` from now on, once a bound is kept.
    pub fn begin(&self, last: Stamp) {
        self.with(|(clock, _)| *clock = Clock::new(last, last));
    }

    pub fn extend(&self, bound: Stamp) {
        self.with(|(clock, _)| clock.extend(bound));
    }

    /// What the node's clock shows now.
    pub fn set_wall(&self, wall: u64) {
        self.with(|(_, shown)| *shown = wall);
    }

    /// What partition 0 is to keep: the bound goes well beyond the last stamp.
    pub fn keep(&self) -> Message {
        let bound = self.with(|(clock, wall)| clock.last().max(*wall) + WINDOW_NS);
        Message::KeepBound { epoch: 1, bound }
    }

    /// An answer to who wants stamps: one at a time, in a row.
    pub fn answer(&self, ticket: u64, count: u32) -> Message {
        let stamps = self.with(|(clock, wall)| {
            let first = clock.take(*wall)?;
            (1..count).try_fold(first, |last, _| {
                clock.take(0).filter(|&next| next == last + 1)
            })?;
            Some(first)
        });
        let none = || Error::new(Code::Unavailable, "the bound is used up");
        let result = stamps.ok_or_else(none);
        Message::Stamps { ticket, result }
    }
}

impl Stamps for Local {
    fn take(&mut self) -> Option<Stamp> {
        self.with(|(clock, wall)| clock.take(*wall))
    }

    fn plausible(&mut self, stamp: Stamp) -> bool {
        self.with(|(clock, _)| stamp <= clock.last())
    }
}

/// Stamps come from elsewhere, with the transactions.
pub(super) struct Elsewhere;

impl Stamps for Elsewhere {
    fn take(&mut self) -> Option<Stamp> {
        None
    }

    fn plausible(&mut self, _: Stamp) -> bool {
        true
    }
}
