//! The oracle as a process of its own, with others that may take over.
//!
//! It issues no timestamp above a bound that a majority of the keepers (the partitions) hold
//! durably, and only while its lease lasts, which counts from the time at which it asked for that
//! bound. A successor comes with a larger epoch and learns the bounds from a majority, whose
//! members refuse older epochs from then on. Then it waits as long as a lease lasts, and begins
//! above all bounds. So it never issues a smaller timestamp than its predecessor, and the
//! predecessor issues none after its successor has begun. This needs clocks whose rates differ by
//! less than a tenth.

use std::collections::BTreeSet;

use dyno_txn_api::{Code, Error, Timestamp};

use crate::message::{Address, Message, PartitionId};

/// How far beyond the time of day a bound is asked for. A timestamp counts as a nanosecond.
const WINDOW_NS: u64 = 2_000_000_000;
/// How long a bound may be used.
const LEASE_NS: u64 = 1_000_000_000;
/// How long a successor waits: a tenth more, because the predecessor's clock may run slower.
const LEASE_WAIT_NS: u64 = LEASE_NS / 10 * 11;
/// The interval at which the lease is renewed. Several renewals may be lost before it ends.
const RENEW_NS: u64 = LEASE_NS / 4;
/// Requests that may wait for a bound, and timestamps that one of them may ask for.
const WAITING_MAX: usize = 4096;
const COUNT_MAX: u32 = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Learning the bounds from a majority of the keepers.
    Fencing,
    /// Waiting until this time, when the predecessor's lease is over for certain.
    Waiting(u64),
    Serving,
    /// Another oracle has a larger epoch.
    Deposed,
}

/// The bound that was asked for last.
#[derive(Debug, Default)]
struct RequestedBound {
    bound: Timestamp,
    /// When it was asked for, by the driver's clock. 0 before the first time.
    at: u64,
    kept_by: BTreeSet<PartitionId>,
}

/// The state machine of an oracle.
#[derive(Debug)]
pub struct Oracle {
    epoch: u64,
    keepers: BTreeSet<PartitionId>,
    state: State,
    last: Timestamp,
    bound: Timestamp,
    lease_until: u64,
    requested: RequestedBound,
    waiting: Vec<(Address, u64, u32)>,
}

impl Oracle {
    /// An oracle that takes over. `epoch` must be above those of all earlier oracles. It sends its
    /// first messages at the first [`Oracle::tick`].
    pub fn new(epoch: u64, keepers: impl IntoIterator<Item = PartitionId>) -> Self {
        Self {
            epoch,
            keepers: keepers.into_iter().collect(),
            state: State::Fencing,
            last: 0,
            bound: 0,
            lease_until: 0,
            requested: RequestedBound::default(),
            waiting: Vec::new(),
        }
    }

    /// Whether another oracle has taken over.
    pub fn is_deposed(&self) -> bool {
        self.state == State::Deposed
    }

    /// Asks for bounds. Call it some times in each quarter of a second. `now` is monotonic,
    /// `wall_ns` the time of the day, which may step.
    pub fn tick(&mut self, now: u64, wall_ns: u64, sends: &mut Vec<(Address, Message)>) {
        if let State::Waiting(until) = self.state
            && now >= until
        {
            // `last` is the largest bound of any predecessor. Nothing may be issued until a larger
            // one is kept.
            self.state = State::Serving;
            self.bound = self.last;
            self.ask_for_bound(now, wall_ns, sends);
            return;
        }
        let due = now >= self.requested.at.saturating_add(RENEW_NS) || self.requested.at == 0;
        if due && matches!(self.state, State::Fencing | State::Serving) {
            self.ask_for_bound(now, wall_ns, sends);
        }
    }

    fn ask_for_bound(&mut self, now: u64, wall_ns: u64, sends: &mut Vec<(Address, Message)>) {
        let bound = match self.state {
            // Above the last bound asked for, so that a late answer to that is not mistaken for one
            // to this, which would extend the lease too far.
            State::Serving => wall_ns
                .max(self.last)
                .saturating_add(WINDOW_NS)
                .max(self.requested.bound + 1),
            _ => 0,
        };
        self.requested = RequestedBound {
            bound,
            at: now,
            kept_by: BTreeSet::new(),
        };
        for &keeper in &self.keepers {
            let keep = Message::KeepBound {
                epoch: self.epoch,
                bound,
            };
            sends.push((Address::Partition(keeper), keep));
        }
    }

    /// Handles a message of another oracle or of a partition.
    pub fn handle(
        &mut self,
        now: u64,
        wall_ns: u64,
        from: Address,
        message: Message,
        sends: &mut Vec<(Address, Message)>,
    ) {
        match (message, from) {
            (Message::TakeTimestamps { ticket, count }, _) => {
                self.waiting.push((from, ticket, count));
                if self.waiting.len() > WAITING_MAX || count > COUNT_MAX || self.is_deposed() {
                    self.waiting.pop();
                    let text = "this oracle does not serve, or is overloaded";
                    let result = Err(Error::new(Code::Unavailable, text));
                    sends.push((from, Message::Timestamps { ticket, result }));
                }
            }
            (Message::BoundKept { epoch, bound }, Address::Partition(keeper)) => {
                self.kept(now, keeper, epoch, bound);
            }
            _ => {}
        }
        self.serve(now, wall_ns, sends);
    }

    fn kept(&mut self, now: u64, keeper: PartitionId, epoch: u64, bound: Timestamp) {
        if epoch > self.epoch {
            self.state = State::Deposed;
            return;
        }
        if epoch < self.epoch || !self.keepers.contains(&keeper) || bound < self.requested.bound {
            return;
        }
        // While fencing every answer counts, even before the majority: a keeper outside of it may
        // hold a larger bound.
        if self.state == State::Fencing {
            self.last = self.last.max(bound);
        }
        self.requested.kept_by.insert(keeper);
        if self.requested.kept_by.len() * 2 <= self.keepers.len() {
            return;
        }
        match self.state {
            State::Fencing => self.state = State::Waiting(now.saturating_add(LEASE_WAIT_NS)),
            State::Serving => {
                self.bound = self.bound.max(self.requested.bound);
                // From the question, not from the answer: a keeper may have accepted a successor
                // between the two.
                self.lease_until = self.requested.at.saturating_add(LEASE_NS);
            }
            State::Waiting(_) | State::Deposed => {}
        }
    }

    fn serve(&mut self, now: u64, wall_ns: u64, sends: &mut Vec<(Address, Message)>) {
        if self.is_deposed() {
            for (to, ticket, _) in std::mem::take(&mut self.waiting) {
                let result = Err(Error::new(
                    Code::Unavailable,
                    "another oracle has taken over",
                ));
                sends.push((to, Message::Timestamps { ticket, result }));
            }
            return;
        }
        if self.state != State::Serving || now >= self.lease_until {
            return;
        }
        let mut served = 0;
        for &(to, ticket, count) in &self.waiting {
            let first = wall_ns.max(self.last + 1);
            let last = first.saturating_add(u64::from(count.max(1)) - 1);
            if last > self.bound {
                break;
            }
            self.last = last;
            served += 1;
            sends.push((
                to,
                Message::Timestamps {
                    ticket,
                    result: Ok(first),
                },
            ));
        }
        self.waiting.drain(..served);
        if served == 0 && !self.waiting.is_empty() && self.requested.bound <= self.bound {
            // The bound is used up before the lease is due for renewal, so a larger one is asked
            // for at once.
            self.ask_for_bound(now, wall_ns, sends);
        }
    }
}
