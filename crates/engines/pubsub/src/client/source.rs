//! Where a consumer reads from: servers in direct mode, brokers, or several clusters of either.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::fetch::Fetched;
use crate::group::{Assigned, Cursor, Membership};
use crate::topic::Position;

/// What the server answers to a member that joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// The number of the group in the database.
    pub group_id: i32,
    /// The number of the topic in the database.
    pub topic_id: i32,
    /// How many partitions the topic has.
    pub partitions: u32,
}

/// The first and the last offset of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionEnds {
    /// The number of the partition, from 0.
    pub partition: i32,
    /// The first offset that retention has left.
    pub first_offset: i64,
    /// The offset that the next record gets.
    pub next_offset: i64,
}

/// The connection of one member of a group, or of a reader without a group. After an error it
/// reconnects at the next call.
pub trait Source: Send {
    /// Makes the caller a member of the group.
    ///
    /// # Errors
    /// See [`crate::Connection::join_group`].
    fn join(&mut self, membership: &Membership) -> Result<Joined>;

    /// Finds the topic without joining a group. Only [`Self::ends`] and [`Self::fetch`] may be
    /// called then.
    ///
    /// # Errors
    /// `unknown-topic`, and the errors of the connection.
    fn attach(&mut self, topic: &str) -> Result<Joined>;

    /// The first and the last offset of each partition. The source must have joined or attached.
    ///
    /// # Errors
    /// Those of the connection.
    fn ends(&mut self) -> Result<Vec<PartitionEnds>>;

    /// Renews the lease, releases partitions, and returns the present assignment.
    ///
    /// # Errors
    /// See [`crate::Connection::group_heartbeat`].
    fn heartbeat(&mut self, released: &[i32]) -> Result<Vec<Assigned>>;

    /// Stores cursors and returns the partitions for which they were refused. A claim must be
    /// durable when this returns. A committed offset need not be, because losing one causes a
    /// redelivery and never a loss.
    ///
    /// # Errors
    /// See [`crate::Connection::group_commit`].
    fn commit(&mut self, cursors: &[Cursor]) -> Result<Vec<i32>>;

    /// Leaves the group, whose partitions are then assigned to the other members.
    ///
    /// # Errors
    /// See [`crate::Connection::group_leave`].
    fn leave(&mut self) -> Result<()>;

    /// Moves the group's offset over records that retention has removed, and returns the new
    /// offset.
    ///
    /// # Errors
    /// See [`crate::Connection::group_skip_lost`].
    fn skip_lost(&mut self, partition: i32, generation: i64) -> Result<i64>;

    /// Reads at these positions. It returns `most_bytes` in all at most, but always the first row,
    /// and comes back as soon as there are records, or empty when `wait` is over.
    ///
    /// # Errors
    /// See [`crate::Connection::fetch`]. The partition of `offset-out-of-range` is in
    /// [`FetchError::partition`] alone.
    fn fetch(
        &mut self,
        positions: &[Position],
        most_bytes: usize,
        wait: Duration,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError>;
}

/// Why a fetch failed, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchError {
    /// What went wrong, with its code and whether to retry.
    pub error: Error,
    /// The partition that failed, if the failure is one partition's.
    pub partition: Option<i32>,
}

impl From<Error> for FetchError {
    fn from(error: Error) -> Self {
        Self {
            error,
            partition: None,
        }
    }
}
