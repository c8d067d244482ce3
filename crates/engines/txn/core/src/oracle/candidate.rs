//! Failover between several oracles, without a coordinator.
//!
//! An oracle that stands by polls the bounds that the partitions keep. While they rise, another
//! oracle serves. When they have not risen for a while, it takes over with a larger epoch. If two
//! take over at the same moment, their epochs differ and the larger one wins. [`Oracle`] makes sure
//! that timestamps rise whichever wins, and however often that happens.

use std::collections::BTreeMap;

use dyno_txn_api::{Code, Error};

use super::{Bound, Oracle};
use crate::message::{Address, Message, PartitionId};

/// The interval at which an oracle that stands by polls the bounds.
const LOOK_NS: u64 = 100_000_000;
/// How long bounds must not rise before another oracle takes over. An oracle that has just taken
/// over raises none while it waits for its predecessor's lease, so this is longer than that. Each
/// oracle adds a share of `SPREAD_NS` of its own, so that usually one of them is first.
const STILL_NS: u64 = 1_500_000_000;
const SPREAD_NS: u64 = 1_000_000_000;

#[derive(Debug)]
enum State {
    Watching {
        /// The bound that each keeper reported last.
        seen: BTreeMap<PartitionId, Bound>,
        rose_at: u64,
        looked_at: u64,
    },
    Serving(Oracle),
}

/// An oracle that serves or stands by.
#[derive(Debug)]
pub struct Candidate {
    keepers: Vec<PartitionId>,
    salt: u32,
    state: State,
}

impl Candidate {
    /// An oracle that stands by. `salt` is random and must differ from that of every other oracle,
    /// earlier ones included, because it makes their epochs differ.
    pub fn new(keepers: impl IntoIterator<Item = PartitionId>, salt: u32) -> Self {
        Self {
            keepers: keepers.into_iter().collect(),
            salt,
            state: watching(),
        }
    }

    /// Whether it believes that it serves.
    pub fn serves(&self) -> bool {
        matches!(self.state, State::Serving(_))
    }

    /// Polls, takes over or renews the lease, whichever is due. To be called about ten times a
    /// second. `now` is monotonic, `wall_ns` the time of the day.
    pub fn tick(&mut self, now: u64, wall_ns: u64, sends: &mut Vec<(Address, Message)>) {
        self.take_over_when_still(now);
        match &mut self.state {
            State::Serving(oracle) => oracle.tick(now, wall_ns, sends),
            State::Watching { looked_at, .. } if now >= *looked_at + LOOK_NS || *looked_at == 0 => {
                *looked_at = now;
                // Epoch 0 is below every other, so the keepers change nothing and answer with what
                // they keep.
                let look = Message::KeepBound { epoch: 0, bound: 0 };
                let look = |&keeper| (Address::Partition(keeper), look.clone());
                sends.extend(self.keepers.iter().map(look));
            }
            State::Watching { .. } => {}
        }
    }

    fn take_over_when_still(&mut self, now: u64) {
        let State::Watching { seen, rose_at, .. } = &self.state else {
            return;
        };
        let patience = STILL_NS + u64::from(self.salt) % SPREAD_NS;
        // A serving oracle raises the bounds of a majority. Any majority shares a keeper with that
        // one, so an oracle that has heard from fewer might not have seen the rise.
        if seen.len() * 2 <= self.keepers.len() || now < rose_at.saturating_add(patience) {
            return;
        }
        // Above every epoch that was seen, and with the salt below it: two oracles that saw the
        // same never choose the same epoch.
        let newest = seen.values().map(|bound| bound.epoch).max().unwrap_or(0);
        let epoch = ((newest >> 32) + 1) << 32 | u64::from(self.salt);
        self.state = State::Serving(Oracle::new(epoch, self.keepers.iter().copied()));
    }

    /// Handles a message of a client or a keeper.
    pub fn handle(
        &mut self,
        now: u64,
        wall_ns: u64,
        from: Address,
        message: Message,
        sends: &mut Vec<(Address, Message)>,
    ) {
        match (&mut self.state, message, from) {
            (State::Serving(oracle), message, from) => {
                oracle.handle(now, wall_ns, from, message, sends);
                // Another oracle has a larger epoch. This one watches again from the start, so that
                // it does not take over before the other one has had its time.
                if oracle.is_deposed() {
                    self.state = watching();
                }
            }
            (State::Watching { .. }, Message::TakeTimestamps { ticket, .. }, from) => {
                let text = "this oracle stands by, because another one serves or has just stopped";
                let result = Err(Error::new(Code::Unavailable, text));
                sends.push((from, Message::Timestamps { ticket, result }));
            }
            (
                State::Watching { seen, rose_at, .. },
                Message::BoundKept { epoch, bound },
                Address::Partition(keeper),
            ) if self.keepers.contains(&keeper) => {
                let timestamp = bound;
                let bound = Bound { epoch, timestamp };
                if seen.values().max().is_none_or(|highest| bound > *highest) {
                    *rose_at = now;
                }
                seen.insert(keeper, bound);
            }
            (State::Watching { .. }, ..) => {}
        }
    }
}

fn watching() -> State {
    State::Watching {
        seen: BTreeMap::new(),
        rose_at: 0,
        looked_at: 0,
    }
}
