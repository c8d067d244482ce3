//! Groups of consumers: membership, ownership of partitions, cursors.

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::start::Start;

/// What a group does when retention has removed records that it has not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenLost {
    /// It goes on at the first record that is left, and counts what it lost.
    #[default]
    Skip,
    /// The member's fetch fails with `offset-out-of-range`, and goes on failing until the group is
    /// reset.
    Fail,
}

/// How a member enters a group. The first member decides where the group starts, and what it does
/// when it loses records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The name of the topic.
    pub topic: String,
    /// The group's name, by the rule for topics.
    pub group: String,
    /// The member's name, unique in the group. A member that joins again under the same name takes
    /// over what it owned.
    pub member: String,
    /// How long the group takes the member for alive after a heartbeat, in milliseconds.
    pub lease_ms: i64,
    /// Where a new group begins.
    pub start: Start,
    /// What a new group does when it loses records. A group that exists keeps its own setting.
    pub when_lost: WhenLost,
}

/// A partition while one member owns it. Another owner, or the same one after it lost the
/// partition, has it in another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ownership {
    /// The number of the partition, from 0.
    pub partition: i32,
    /// Changes of ownership up to this one.
    pub generation: i64,
}

/// A partition that a member owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assigned {
    /// The number of the partition.
    pub partition: i32,
    /// The generation of this ownership, which commits carry.
    pub generation: i64,
    /// The first offset that is not committed.
    pub committed: i64,
    /// Whether another member waits for it. The owner should finish, commit, and release it.
    pub wanted: bool,
}

/// How far a member has read a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the partition.
    pub partition: i32,
    /// The generation of the ownership.
    pub generation: i64,
    /// The first offset that is not processed; `None` leaves it as it is.
    pub committed: Option<i64>,
    /// Records before this offset may have been handed out; `None` leaves it as it is.
    pub claimed_to: Option<i64>,
}

/// One partition of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lag {
    /// The number of the partition.
    pub partition: i32,
    /// The member that owns it; `None` if it has no owner at present.
    pub member: Option<String>,
    /// Changes of ownership so far.
    pub generation: i64,
    /// The first offset that is not committed.
    pub committed: i64,
    /// The end of the log.
    pub next_offset: i64,
    /// Records that are there and not committed.
    pub lag: i64,
    /// How many records may have been handed out twice because of changes of ownership, at most. A
    /// member that is lost had claimed records in advance, and what it did with the last of them is
    /// not known.
    pub redelivered: i64,
    /// How many records retention removed before they were committed.
    pub lost: i64,
}

impl Connection {
    /// Joins a group, which is made if it does not exist, and returns its number.
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

    /// Renews the lease, releases partitions, and returns what the member owns now. The caller
    /// commits what it handed out of `released` before, or those records count as redelivered.
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

    /// Stores how far partitions were read. Returns the partitions that were refused, because the
    /// member does not own them at that generation any more or committed beyond the claim.
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

    /// Leaves a group. What the member owned is assigned to others at once.
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
