//! A partition that is assigned to a consumer, and how far its records were handed out, claimed and
//! committed.

use super::options::Acknowledge;
use crate::group::{Assigned, Cursor, Ownership};
use crate::topic::Position;

/// An assigned partition. Offsets are ordered `committed <= position <= claimed_to`, so the server
/// always knows of every record that may have been processed.
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

    pub fn ownership(&self) -> Ownership {
        Ownership {
            partition: self.partition,
            generation: self.generation,
        }
    }

    /// Where the next fetch begins.
    pub fn next(&self) -> Position {
        Position {
            partition: self.partition,
            offset: self.position,
        }
    }

    /// Whether everything that was handed out is committed.
    pub fn is_settled(&self) -> bool {
        self.committed == self.position
    }

    /// The cursor that commits up to an offset. A cursor with a claim is stored durably (see
    /// [`Source::commit`](super::source::Source::commit)), so a commit that must be durable repeats
    /// the present claim.
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

    /// The last cursor of a partition that is released. It lowers the claim to what was handed out.
    pub fn release(&self) -> Cursor {
        Cursor {
            partition: self.partition,
            generation: self.generation,
            committed: Some(self.committed),
            claimed_to: Some(self.position),
        }
    }
}
