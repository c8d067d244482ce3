//! What each producer has appended to one partition, as far as this broker remembers.

use std::collections::HashMap;

use crate::batch::Batch;

/// Producers that are remembered per partition; a forgotten one is asked of the database again.
const MOST_PRODUCERS: usize = 10_000;

/// A producer's last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The sequence of its last record; -1: it has none.
    pub last_sequence: i64,
    /// The offset and the sequence of the first record of its last append.
    pub last_base: i64,
    pub last_first: i64,
}

impl Known {
    /// A producer that has appended nothing.
    pub const NEW: Known = Known {
        last_sequence: -1,
        last_base: -1,
        last_first: 0,
    };
}

/// What a batch is, against what its producer has appended.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It comes next.
    Next,
    /// It is there; its offset, if that is still known.
    Duplicate(Option<i64>),
    /// It belongs to the run that waits for its commit, this many records after the run's first.
    Pending(i64),
    /// Records are missing before it, or it overlaps half.
    Gap {
        /// The sequence that would come next.
        expected: i64,
    },
}

/// The producers of one partition.
#[derive(Debug, Default)]
pub struct Ledger {
    known: HashMap<i64, Known>,
}

impl Ledger {
    pub fn knows(&self, producer_id: i64) -> bool {
        self.known.contains_key(&producer_id)
    }

    /// Takes what the database says, or what was just committed.
    pub fn set(&mut self, producer_id: i64, known: Known) {
        if self.known.len() >= MOST_PRODUCERS && !self.known.contains_key(&producer_id) {
            self.known.clear();
        }
        self.known.insert(producer_id, known);
    }

    /// Forgets everything: the database is asked again.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// What `batch` is. `pending` is the first and last sequence of the producer's run that is
    /// being put together.
    pub fn judge(&self, batch: &Batch, pending: Option<(i64, i64)>) -> Verdict {
        let known = self.known.get(&batch.producer_id).unwrap_or(&Known::NEW);
        let expected = pending.map_or(known.last_sequence, |(_, last)| last) + 1;
        if batch.first_sequence == expected {
            return Verdict::Next;
        }
        if batch.last_sequence() <= known.last_sequence && batch.first_sequence >= 0 {
            let within = batch.first_sequence - known.last_first;
            return Verdict::Duplicate((within >= 0).then_some(known.last_base + within));
        }
        match pending {
            Some((first, last))
                if batch.first_sequence >= first && batch.last_sequence() <= last =>
            {
                Verdict::Pending(batch.first_sequence - first)
            }
            _ => Verdict::Gap { expected },
        }
    }
}

#[cfg(test)]
mod tests;
