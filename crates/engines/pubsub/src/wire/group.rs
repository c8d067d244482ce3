//! Membership of groups, ownership of partitions, and cursors.

use super::message::{fields, message};
use super::{Ask, FromWhere};

message! {
    JoinGroup,
    /// Joins a group of a topic, which is made if it does not exist.
    JoinGroup {
        /// The name of the topic.
        topic: String,
        /// The name of the group.
        group: String,
        /// The member's name, unique in the group; a member that joins again continues.
        member: String,
        /// Where a group begins that has not read anything yet.
        start: FromWhere,
        /// How long the group takes the member for alive after a heartbeat, in milliseconds.
        lease_ms: u32,
        /// What a new group does when retention removes what it has not read: `skip` or `fail`.
        when_lost: String,
    }
}

message! {
    JoinGroup,
    /// The member has joined. Its partitions come with heartbeats.
    Joined {
        /// The group's number, for the requests that come often.
        group_id: i32,
    }
}

impl Ask for JoinGroup {
    type Answer = Joined;
}

message! {
    Heartbeat,
    /// Renews a member's lease, releases partitions, and asks what the member owns.
    Heartbeat {
        /// The number of the group, from [`Joined`].
        group_id: i32,
        /// The name of the member.
        member: String,
        /// Partitions that the member has finished with and committed.
        released: Vec<i32>,
    }
}

fields! {
    /// One partition that a member owns.
    Assigned {
        /// The number of the partition.
        partition: i32,
        /// The generation of this ownership, which commits carry.
        generation: i64,
        /// The first offset that is not committed.
        committed: i64,
        /// Whether another member waits for it. The owner should finish, commit, and release it.
        wanted: bool,
    }
}

message! {
    Heartbeat,
    /// What the member owns now.
    Assignments {
        /// The partitions, ordered by number.
        assigned: Vec<Assigned>,
    }
}

impl Ask for Heartbeat {
    type Answer = Assignments;
}

fields! {
    /// How far a member has read one partition.
    Cursor {
        /// The number of the partition.
        partition: i32,
        /// The generation of the ownership.
        generation: i64,
        /// The first offset that is not processed; -1 leaves it as it was.
        committed: i64,
        /// The first offset that may not be handed out yet; -1 leaves it as it was.
        claimed_to: i64,
    }
}

message! {
    Commit,
    /// Stores how far a member has read.
    Commit {
        /// The number of the group, from [`Joined`].
        group_id: i32,
        /// The name of the member.
        member: String,
        /// Each partition at most once.
        cursors: Vec<Cursor>,
    }
}

message! {
    Commit,
    /// The answer to [`Commit`]: all cursors are stored that are not listed here.
    Committed {
        /// Partitions whose generation was not the member's any more: stop reading them.
        refused: Vec<i32>,
    }
}

impl Ask for Commit {
    type Answer = Committed;
}

message! {
    LeaveGroup,
    /// Leaves a group. What the member owned is assigned to others at once.
    LeaveGroup {
        /// The number of the group, from [`Joined`].
        group_id: i32,
        /// The name of the member.
        member: String,
    }
}

message! {
    LeaveGroup,
    /// The answer to [`LeaveGroup`]: the member is out.
    Left {}
}

impl Ask for LeaveGroup {
    type Answer = Left;
}

message! {
    SkipLost,
    /// Moves a member to the first record that is left, after retention has removed the records
    /// where it wanted to go on.
    SkipLost {
        /// The number of the group, from [`Joined`].
        group_id: i32,
        /// The name of the member.
        member: String,
        /// The number of the partition.
        partition: i32,
        /// The generation of the ownership.
        generation: i64,
    }
}

message! {
    SkipLost,
    /// Where the member goes on.
    Skipped {
        /// The first offset that is there; what was lost is counted in the group.
        committed: i64,
    }
}

impl Ask for SkipLost {
    type Answer = Skipped;
}
