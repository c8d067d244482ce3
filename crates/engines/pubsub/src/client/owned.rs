//! The partitions that a consumer owns, and how far each was fetched, handed out, claimed and committed.

use super::options::Acknowledge;
use crate::group::{Assigned, Cursor};

/// One partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owned {
    pub partition: i32,
    pub generation: i64,
    /// The next offset to hand out.
    pub position: i64,
    pub committed: i64,
    pub claimed_to: i64,
    pub wanted: bool,
}

impl Owned {
    pub fn new(assigned: &Assigned) -> Self {
        Self {
            partition: assigned.partition,
            generation: assigned.generation,
            position: assigned.committed,
            committed: assigned.committed,
            claimed_to: assigned.committed,
            wanted: assigned.wanted,
        }
    }

    /// Everything that was handed out is committed.
    pub fn is_settled(&self) -> bool {
        self.committed == self.position
    }

    /// What is claimed has to be on stable storage (see [`Source::commit`](super::source::Source::commit)), so a cursor
    /// that has to be says once more how far the claim goes.
    pub fn commits(&self, upto: i64, acknowledge: Acknowledge) -> Cursor {
        let durable = acknowledge == Acknowledge::Committed;
        Cursor {
            partition: self.partition,
            generation: self.generation,
            committed: Some(upto),
            claimed_to: durable.then_some(self.claimed_to),
        }
    }

    pub fn claims(&self, upto: i64) -> Cursor {
        Cursor {
            partition: self.partition,
            generation: self.generation,
            committed: None,
            claimed_to: Some(upto),
        }
    }

    /// Everything that was handed out, and nothing beyond: for a partition that is given up.
    pub fn last_word(&self) -> Cursor {
        Cursor {
            partition: self.partition,
            generation: self.generation,
            committed: Some(self.committed),
            claimed_to: Some(self.position),
        }
    }
}
