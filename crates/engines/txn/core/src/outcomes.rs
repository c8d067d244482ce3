//! The outcomes of the latest transactions, for messages about them that arrive late or twice.

use std::collections::{HashMap, VecDeque};

use dyno_txn_api::Timestamp;

use crate::message::Fate;

/// How many outcomes are remembered.
const REMEMBERED: usize = 1 << 17;

#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    fates: HashMap<Timestamp, bool>,
    in_order: VecDeque<Timestamp>,
    /// The largest timestamp whose outcome was dropped. At or below it, a transaction that is not
    /// known may have committed or aborted.
    forgotten: Timestamp,
}

impl Outcomes {
    pub fn get(&self, timestamp: Timestamp) -> Option<Fate> {
        match self.fates.get(&timestamp) {
            Some(true) => Some(Fate::Committed),
            Some(false) => Some(Fate::Aborted),
            None if timestamp <= self.forgotten => Some(Fate::Forgotten),
            None => None,
        }
    }

    pub fn insert(&mut self, timestamp: Timestamp, committed: bool) {
        if self.fates.insert(timestamp, committed).is_none() {
            self.in_order.push_back(timestamp);
        }
        if self.in_order.len() > REMEMBERED
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.fates.remove(&oldest);
            self.forgotten = self.forgotten.max(oldest);
        }
    }

    /// Treats every unknown transaction at or below this timestamp as forgotten, as after a
    /// restart.
    pub fn forget_to(&mut self, timestamp: Timestamp) {
        self.forgotten = self.forgotten.max(timestamp);
    }
}
