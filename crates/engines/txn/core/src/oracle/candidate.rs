//! Who of several oracles serves: nobody steers them.
//!
//! One that does not serve looks at the bounds that the partitions keep. While they rise another one serves;
//! when they have stood still for a while it takes over with a larger epoch. Two that do so at the same moment
//! have different epochs, and the larger one wins; [`Oracle`] sees to it that stamps rise whoever wins, and
//! however often.

use std::collections::BTreeMap;

use dyno_txn_api::{Code, Error, Stamp};

use super::Oracle;
use crate::message::{Address, Message, PartitionId};

/// After how long bounds are looked at again.
const LOOK_NS: u64 = 100_000_000;
/// For how long they stand still before another oracle takes over: longer than one that has just taken over
/// waits for its predecessor's lease, in which it raises none. A part differs from oracle to oracle, so that
/// one comes first.
const STILL_NS: u64 = 1_500_000_000;
const SPREAD_NS: u64 = 1_000_000_000;

#[derive(Debug)]
enum State {
    Watching {
        /// What each keeper has said.
        seen: BTreeMap<PartitionId, (u64, Stamp)>,
        rose_at: u64,
        looked_at: u64,
    },
    Serving(Oracle),
}

/// An oracle that serves, or stands by.
#[derive(Debug)]
pub struct Candidate {
    keepers: Vec<PartitionId>,
    salt: u32,
    state: State,
}

impl Candidate {
    /// One that stands by at first. `salt` is random, and different for each that ever was.
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

    /// To be called some ten times a second. `now` is monotonic, `wall_ns` the time of the day.
    pub fn tick(&mut self, now: u64, wall_ns: u64, sends: &mut Vec<(Address, Message)>) {
        self.take_over_when_still(now);
        match &mut self.state {
            State::Serving(oracle) => oracle.tick(now, wall_ns, sends),
            State::Watching { looked_at, .. } if now >= *looked_at + LOOK_NS || *looked_at == 0 => {
                *looked_at = now;
                // Of no epoch: it changes nothing, and is answered with what is kept.
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
        if seen.len() * 2 <= self.keepers.len() || now < rose_at.saturating_add(patience) {
            return;
        }
        let newest = seen.values().map(|(epoch, _)| *epoch).max().unwrap_or(0);
        let epoch = ((newest >> 32) + 1) << 32 | u64::from(self.salt);
        self.state = State::Serving(Oracle::new(epoch, self.keepers.iter().copied()));
    }

    /// Takes a message in.
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
                if oracle.is_deposed() {
                    self.state = watching();
                }
            }
            (State::Watching { .. }, Message::TakeStamps { ticket, .. }, from) => {
                let text = "this oracle stands by, for another one serves or has just done so";
                let result = Err(Error::new(Code::Unavailable, text));
                sends.push((from, Message::Stamps { ticket, result }));
            }
            (
                State::Watching { seen, rose_at, .. },
                Message::BoundKept { epoch, bound },
                Address::Partition(keeper),
            ) if self.keepers.contains(&keeper) => {
                let highest = seen.values().max().copied();
                if highest.is_none_or(|highest| (epoch, bound) > highest) {
                    *rose_at = now;
                }
                seen.insert(keeper, (epoch, bound));
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
