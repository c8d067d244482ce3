//! Stamps from oracles in other processes: whoever wants one at the same moment shares a request.

use std::collections::HashMap;

use dyno_txn_api::{Code, Error, Result, Stamp};
use dyno_txn_core::message::{Address, Message, PartitionId};
use dyno_txn_core::oracle::Batcher;

/// After how long without an answer another oracle is asked; how long it is waited after a refusal.
const PATIENCE_NS: u64 = 400_000_000;
const PAUSE_NS: u64 = 20_000_000;
/// After how long without any stamp those who wait are told so.
const GIVE_UP_NS: u64 = 8_000_000_000;
/// Who may wait at once.
const WAITING_MAX: usize = 64 << 10;

/// Who wants a stamp.
#[derive(Debug)]
pub(crate) enum Want {
    /// The end of this thread's recovery.
    Floor,
    /// A client's message.
    Message(Address, PartitionId, Message),
}

/// One thread's.
#[derive(Debug)]
pub(crate) struct Asker {
    batcher: Batcher,
    waiting: HashMap<u64, Want>,
    next: u64,
    oracles: usize,
    active: usize,
    /// What is to be sent, from when on.
    unsent: Option<(u64, Message)>,
    asked_at: u64,
    /// When the last stamp came, or the first one was wanted.
    served_at: u64,
}

impl Asker {
    pub fn new(oracles: usize) -> Self {
        Self {
            batcher: Batcher::default(),
            waiting: HashMap::new(),
            next: 0,
            oracles,
            active: 0,
            unsent: None,
            asked_at: 0,
            served_at: 0,
        }
    }

    /// Somebody wants a stamp; handed back when too many wait.
    pub fn want(&mut self, now: u64, want: Want) -> Option<Want> {
        if self.waiting.len() >= WAITING_MAX {
            return Some(want);
        }
        if self.waiting.is_empty() {
            self.served_at = now;
        }
        self.next += 1;
        self.waiting.insert(self.next, want);
        if let Some(ask) = self.batcher.want(self.next) {
            self.unsent = Some((now, ask));
        }
        None
    }

    /// Whether something is due soon.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What is to be sent now, and to which oracle. [`Asker::failed`] when it cannot be.
    pub fn outgoing(&mut self, now: u64) -> Option<(usize, Message)> {
        if self.unsent.is_none() && self.is_waiting() && now >= self.asked_at + PATIENCE_NS {
            self.failed(now);
        }
        let (_, ask) = self.unsent.take_if(|(from, _)| *from <= now)?;
        self.asked_at = now;
        Some((self.active, ask))
    }

    /// The oracle is not there, or does not serve: the next one, in a moment.
    pub fn failed(&mut self, now: u64) {
        self.active = (self.active + 1) % self.oracles;
        if let Some(ask) = self.batcher.again() {
            self.unsent = Some((now + PAUSE_NS, ask));
        }
    }

    /// An oracle is gone.
    pub fn lost(&mut self, now: u64, oracle: usize) {
        if oracle == self.active && self.is_waiting() {
            self.failed(now);
        }
    }

    /// An oracle answered: who gets which stamp.
    pub fn answered(
        &mut self,
        now: u64,
        oracle: usize,
        ticket: u64,
        result: Result<Stamp>,
    ) -> Vec<(Want, Stamp)> {
        if oracle != self.active {
            return Vec::new();
        }
        if result.is_err() {
            self.failed(now);
            return Vec::new();
        }
        let (given, ask) = self.batcher.answered(ticket, result);
        if let Some(ask) = ask {
            self.unsent = Some((now, ask));
        }
        let mut list = Vec::new();
        for (who, stamp) in given {
            self.served_at = now;
            if let (Some(want), Ok(stamp)) = (self.waiting.remove(&who), stamp) {
                list.push((want, stamp));
            }
        }
        list
    }

    /// Those who have waited for too long; the end of recovery waits on.
    pub fn give_up(&mut self, now: u64) -> Vec<(Want, Error)> {
        if !self.is_waiting() || now < self.served_at + GIVE_UP_NS {
            return Vec::new();
        }
        let text = "no oracle has given a stamp for some seconds";
        self.batcher.fail(text);
        self.unsent = None;
        let given_up: Vec<_> = self.waiting.drain().map(|(_, want)| want).collect();
        let mut list = Vec::new();
        for want in given_up {
            match want {
                Want::Floor => drop(self.want(now, want)),
                want => list.push((want, Error::new(Code::Unavailable, text))),
            }
        }
        list
    }
}
