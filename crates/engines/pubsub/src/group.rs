//! Groups of consumers: membership, ownership of partitions, cursors.

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::start::Start;

/// What a group does when retention took records that it has not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenLost {
    /// It goes on at the first record that is there; what it lost is counted.
    #[default]
    Skip,
    /// It fails with `offset-out-of-range`.
    Fail,
}

/// How a member enters a group. The first member decides where the group starts, and what it does
/// when it loses records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The topic's name.
    pub topic: String,
    /// The group's name, by the rule for topics.
    pub group: String,
    /// The member's name, its own in the group. Who joins again with it takes over what it owned.
    pub member: String,
    /// How long the member is taken for alive after a heartbeat, in milliseconds.
    pub lease_ms: i64,
    /// Where a new group begins.
    pub start: Start,
    /// For a new group.
    pub when_lost: WhenLost,
}

/// A partition that a member owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assigned {
    /// The partition.
    pub partition: i32,
    /// The generation of this ownership: commits carry it.
    pub generation: i64,
    /// The first offset that is not committed.
    pub committed: i64,
    /// Whether another member waits for it: finish, commit, and release it.
    pub wanted: bool,
}

/// How far a member has read a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The partition.
    pub partition: i32,
    /// The generation of the ownership.
    pub generation: i64,
    /// The first offset that is not done with; `None`: as it is.
    pub committed: Option<i64>,
    /// Records before this offset may have been handed out; `None`: as it is.
    pub claimed_to: Option<i64>,
}

/// One partition of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lag {
    /// The partition.
    pub partition: i32,
    /// Who owns it.
    pub member: Option<String>,
    /// Changes of ownership so far.
    pub generation: i64,
    /// The first offset that is not committed.
    pub committed: i64,
    /// The end of the log.
    pub next_offset: i64,
    /// Records that are there and not committed.
    pub lag: i64,
    /// How many records may have been handed out again after changes of ownership, at most: a
    /// member that is lost claimed them in advance, and what it did with the last of them is not
    /// known.
    pub redelivered: i64,
    /// Records that retention took before they were committed.
    pub lost: i64,
}

impl Connection {
    /// Enters a group, which is made when there is none; returns its number.
    ///
    /// # Errors
    /// `unknown-topic`, `bad-argument`.
    pub fn join_group(&mut self, membership: &Membership) -> Result<i32> {
        let when_lost = match membership.when_lost {
            WhenLost::Skip => "skip",
            WhenLost::Fail => "fail",
        };
        let Membership {
            topic,
            group,
            member,
            lease_ms,
            start,
            ..
        } = membership;
        self.client()
            .query_one(
                "SELECT pubsub.join_group($1, $2, $3, $4, $5, $6)",
                &[topic, group, member, lease_ms, &start.text(), &when_lost],
            )
            .map(|row| row.get(0))
            .map_err(Error::statement(format_args!(
                "join group {group:?} of topic {topic:?} as {member:?}"
            )))
    }

    /// Renews the lease, gives partitions back, and says what the member owns now. Commit what was
    /// handed out of `released` before, or it counts as redelivered.
    ///
    /// # Errors
    /// `unknown-member` when the lease has lapsed: join again; `unknown-group`.
    pub fn group_heartbeat(
        &mut self,
        group_id: i32,
        member: &str,
        released: &[i32],
    ) -> Result<Vec<Assigned>> {
        let rows = self
            .client()
            .query(
                "SELECT partition, generation, committed, wanted FROM pubsub.group_heartbeat($1, $2, $3)",
                &[&group_id, &member, &released],
            )
            .map_err(Error::statement(format_args!("renew the lease of {member:?} in group {group_id}")))?;
        let assigned = rows.iter().map(|row| Assigned {
            partition: row.get(0),
            generation: row.get(1),
            committed: row.get(2),
            wanted: row.get(3),
        });
        Ok(assigned.collect())
    }

    /// Stores how far partitions were read, and returns those that were refused: not the member's
    /// at that generation any more, or committed beyond the claim.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn group_commit(
        &mut self,
        group_id: i32,
        member: &str,
        cursors: &[Cursor],
    ) -> Result<Vec<i32>> {
        let partitions: Vec<i32> = cursors.iter().map(|cursor| cursor.partition).collect();
        let generations: Vec<i64> = cursors.iter().map(|cursor| cursor.generation).collect();
        let committed: Vec<Option<i64>> = cursors.iter().map(|cursor| cursor.committed).collect();
        let claims: Vec<Option<i64>> = cursors.iter().map(|cursor| cursor.claimed_to).collect();
        let statement = self.prepared("SELECT pubsub.group_commit($1, $2, $3, $4, $5, $6)")?;
        self.client()
            .query_one(
                &statement,
                &[
                    &group_id,
                    &member,
                    &partitions,
                    &generations,
                    &committed,
                    &claims,
                ],
            )
            .map(|row| row.get(0))
            .map_err(Error::statement(format_args!(
                "commit for {member:?} in group {group_id}"
            )))
    }

    /// Leaves a group; what the member owned is free at once.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn group_leave(&mut self, group_id: i32, member: &str) -> Result<()> {
        self.client()
            .execute("SELECT pubsub.group_leave($1, $2)", &[&group_id, &member])
            .map(|_| ())
            .map_err(Error::statement(format_args!(
                "leave group {group_id} as {member:?}"
            )))
    }

    /// Moves an owned partition to the first record that retention left, counts what was lost, and
    /// returns where to go on.
    ///
    /// # Errors
    /// `offset-out-of-range` when the group is one that fails; `wrong-generation`.
    pub fn group_skip_lost(
        &mut self,
        group_id: i32,
        member: &str,
        partition: i32,
        generation: i64,
    ) -> Result<i64> {
        self.client()
            .query_one(
                "SELECT pubsub.group_skip_lost($1, $2, $3, $4)",
                &[&group_id, &member, &partition, &generation],
            )
            .map(|row| row.get(0))
            .map_err(Error::statement(format_args!(
                "move group {group_id} over what partition {partition} lost"
            )))
    }
}
