//! The last append of each producer to one partition, as far as this broker remembers it. Sequences
//! are judged by it without asking the database.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use dyno_pubsub::{begins_epoch, epoch};

use crate::batch::Batch;

/// The most producers that are remembered for a partition, unless one append has more. A producer
/// that was forgotten is asked of the database again.
const MOST_PRODUCERS: usize = 10_000;

/// The last run of one producer in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerState {
    /// The sequence of its last record; -1 if it has none.
    pub last_sequence: i64,
    /// The offset of the first record of its last append, and that record's sequence.
    pub last_base: i64,
    pub last_first: i64,
}

impl ProducerState {
    /// The state of a producer that has appended nothing.
    pub const NEW: ProducerState = ProducerState {
        last_sequence: -1,
        last_base: -1,
        last_first: 0,
    };
}

/// How a batch relates to what its producer has appended.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what the producer appends next.
    Next,
    /// It is in the log already, at this offset if that is still known.
    Duplicate(Option<i64>),
    /// It repeats part of the run that waits for its commit, and begins this many records after the
    /// run's first.
    Pending(i64),
    /// Records are missing before it, or it overlaps what is in the log only in part.
    Gap {
        /// The sequence that would come next.
        expected: i64,
    },
}

/// The producers of one partition.
#[derive(Debug, Default)]
pub struct Ledger {
    producers: HashMap<i64, ProducerState>,
}

impl Ledger {
    /// Returns the producers among these that have to be asked of the database before their batches
    /// are judged. If there is no room for them, all producers but these are forgotten. One of
    /// these that was forgotten would be judged as if it had appended nothing, and refused for a
    /// gap.
    pub fn begin_learning(&mut self, ids: impl Iterator<Item = i64>) -> Vec<i64> {
        let ids: HashSet<i64> = ids.collect();
        let unknown = ids.iter().filter(|id| !self.producers.contains_key(id));
        let unknown: Vec<i64> = unknown.copied().collect();
        if self.producers.len() + unknown.len() > MOST_PRODUCERS {
            self.producers.retain(|id, _| ids.contains(id));
        }
        unknown
    }

    /// Stores what the database says, or what was just committed.
    pub fn set(&mut self, producer_id: i64, state: ProducerState) {
        self.producers.insert(producer_id, state);
    }

    /// Forgets all producers, so that the database is asked again.
    pub fn clear(&mut self) {
        self.producers.clear();
    }

    /// Judges a batch. `pending` has the sequences of the producer's run that is being put
    /// together.
    pub fn judge(&self, batch: &Batch, pending: Option<&RangeInclusive<i64>>) -> Verdict {
        let state = self
            .producers
            .get(&batch.producer_id)
            .unwrap_or(&ProducerState::NEW);
        let expected = pending.map_or(state.last_sequence, |run| *run.end()) + 1;
        let begins_epoch =
            pending.is_none() && begins_epoch(batch.first_sequence, state.last_sequence);
        if batch.first_sequence == expected || begins_epoch {
            return Verdict::Next;
        }
        // Only the last append of a producer is remembered. The offset of an earlier record cannot
        // be computed from it, because other producers' records may lie between.
        // Records of an epoch that is over are not known to be in the log: their producer may have
        // given them up, and sent them again in its new epoch.
        let same_epoch = epoch(batch.first_sequence) == epoch(state.last_sequence);
        if batch.last_sequence() <= state.last_sequence && same_epoch && batch.first_sequence >= 0 {
            let within = batch.first_sequence - state.last_first;
            return Verdict::Duplicate((within >= 0).then_some(state.last_base + within));
        }
        match pending {
            Some(run)
                if run.contains(&batch.first_sequence) && run.contains(&batch.last_sequence()) =>
            {
                Verdict::Pending(batch.first_sequence - run.start())
            }
            _ => Verdict::Gap { expected },
        }
    }
}

#[cfg(test)]
mod tests;
