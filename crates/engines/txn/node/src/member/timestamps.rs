//! Timestamps from oracles in other processes. All waiters of a thread share one request: while it
//! is under way further ones gather for the next.

use std::collections::HashMap;

use dyno_txn_api::{Code, Error, Result, Timestamp};
use dyno_txn_core::message::Message;
use dyno_txn_core::oracle::Batcher;

use crate::threads::Envelope;

/// How long an answer may take before another oracle is asked.
const ANSWER_WAIT_NS: u64 = 400_000_000;
/// How long to wait before the next oracle is asked after one has refused.
const PAUSE_NS: u64 = 20_000_000;
/// How long the waiters wait without any timestamp arriving before they are told so.
const GIVE_UP_NS: u64 = 8_000_000_000;
/// Waiters at most.
const WAITING_MAX: usize = 64 << 10;

/// Who waits for a timestamp.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// The end of this thread's recovery.
    Recovery,
    /// A client's message.
    Message(Envelope),
}

/// The waiters of one thread.
#[derive(Debug)]
pub(crate) struct TimestampRequests {
    batcher: Batcher,
    /// By the number under which the batcher knows them.
    waiting: HashMap<u64, Waiter>,
    next: u64,
    oracles: usize,
    /// The index of the oracle that is asked at present.
    active: usize,
    unsent: Option<Unsent>,
    asked_at: u64,
    /// When the last timestamp arrived, or the first waiter came.
    served_at: u64,
}

#[derive(Debug)]
struct Unsent {
    /// When it may be sent.
    not_before: u64,
    request: Message,
}

impl TimestampRequests {
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

    /// Adds a waiter. It is handed back if too many wait.
    pub fn add(&mut self, now: u64, waiter: Waiter) -> Option<Waiter> {
        if self.waiting.len() >= WAITING_MAX {
            return Some(waiter);
        }
        if self.waiting.is_empty() {
            self.served_at = now;
        }
        self.next += 1;
        self.waiting.insert(self.next, waiter);
        if let Some(request) = self.batcher.want(self.next) {
            self.set_unsent(now, request);
        }
        None
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The request that is to be sent now, and the index of its oracle. If it cannot be sent, the
    /// caller calls [`TimestampRequests::oracle_failed`].
    pub fn outgoing(&mut self, now: u64) -> Option<(usize, Message)> {
        if self.unsent.is_none() && self.is_waiting() && now >= self.asked_at + ANSWER_WAIT_NS {
            self.oracle_failed(now);
        }
        let is_due = |unsent: &mut Unsent| unsent.not_before <= now;
        let Unsent { request, .. } = self.unsent.take_if(is_due)?;
        self.asked_at = now;
        Some((self.active, request))
    }

    /// Asks the next oracle in a moment, because this one is not there or does not serve. The new
    /// request has a new ticket and includes waiters that came since. A late answer to the old one
    /// is ignored: it was issued before they came, so its timestamps could lie below those of
    /// transactions that had ended by then.
    pub fn oracle_failed(&mut self, now: u64) {
        self.active = (self.active + 1) % self.oracles;
        if let Some(request) = self.batcher.again() {
            self.set_unsent(now + PAUSE_NS, request);
        }
    }

    /// The connection to an oracle has ended.
    pub fn oracle_disconnected(&mut self, now: u64, oracle: usize) {
        if oracle == self.active && self.is_waiting() {
            self.oracle_failed(now);
        }
    }

    /// Takes an oracle's answer. Returns which waiter gets which timestamp.
    pub fn on_answer(
        &mut self,
        now: u64,
        oracle: usize,
        ticket: u64,
        result: Result<Timestamp>,
    ) -> Vec<(Waiter, Timestamp)> {
        // Only the oracle that is asked at present counts: a late answer of an earlier one must not
        // move this thread on to a third.
        if oracle != self.active {
            return Vec::new();
        }
        if result.is_err() {
            self.oracle_failed(now);
            return Vec::new();
        }
        let (issued, request) = self.batcher.answered(ticket, result);
        if let Some(request) = request {
            self.set_unsent(now, request);
        }
        let mut served = Vec::new();
        for (number, timestamp) in issued {
            self.served_at = now;
            if let (Some(waiter), Ok(timestamp)) = (self.waiting.remove(&number), timestamp) {
                served.push((waiter, timestamp));
            }
        }
        served
    }

    /// Removes all messages if no timestamp has arrived for too long, and returns them with the
    /// reason. The end of recovery goes on waiting, because the thread can do nothing without it.
    pub fn expire(&mut self, now: u64) -> Vec<(Envelope, Error)> {
        if !self.is_waiting() || now < self.served_at + GIVE_UP_NS {
            return Vec::new();
        }
        let text = "no oracle has issued a timestamp for some seconds";
        self.batcher.fail(text);
        self.unsent = None;
        let waiters: Vec<_> = self.waiting.drain().map(|(_, waiter)| waiter).collect();
        let mut expired = Vec::new();
        for waiter in waiters {
            match waiter {
                Waiter::Recovery => drop(self.add(now, waiter)),
                Waiter::Message(envelope) => {
                    expired.push((envelope, Error::new(Code::Unavailable, text)));
                }
            }
        }
        expired
    }

    fn set_unsent(&mut self, not_before: u64, request: Message) {
        self.unsent = Some(Unsent {
            not_before,
            request,
        });
    }
}
