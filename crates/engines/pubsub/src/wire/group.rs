//! Groups of consumers.

use super::message::{fields, message};
use super::{Ask, FromWhere};

message! {
    JoinGroup,
    /// Enters a group of a topic, which is made when there is none.
    JoinGroup {
        /// The topic's name.
        topic: String,
        /// The group's name.
        group: String,
        /// The member's name, its own in the group; a member that joins again continues.
        member: String,
        /// Where a group begins that has read nothing yet.
        start: FromWhere,
        /// How long the member is taken for alive after a heartbeat, in milliseconds.
        lease_ms: u32,
        /// What a new group does when retention took what it had not read: `skip` or `fail`.
        when_lost: String,
    }
}

message! {
    JoinGroup,
    /// The member is in; its partitions come with heartbeats.
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
    /// Renews a member's lease, gives partitions back, and asks what it owns.
    Heartbeat {
        /// The group.
        group_id: i32,
        /// The member.
        member: String,
        /// Partitions that the member has finished with and committed.
        released: Vec<i32>,
    }
}

fields! {
    /// One partition that a member owns.
    Assigned {
        /// The partition.
        partition: i32,
        /// The generation of this ownership: commits carry it.
        generation: i64,
        /// The first offset that is not committed.
        committed: i64,
        /// Whether another member waits for it: finish, commit, and release it.
        wanted: bool,
    }
}

message! {
    Heartbeat,
    /// What the member owns now.
    Assignments {
        /// By partition.
        assigned: Vec<Assigned>,
    }
}

impl Ask for Heartbeat {
    type Answer = Assignments;
}

fields! {
    /// How far a member has read one partition.
    Cursor {
        /// The partition.
        partition: i32,
        /// The generation of the ownership.
        generation: i64,
        /// The first offset that is not done with; -1: as it was.
        committed: i64,
        /// The first offset that may not be handed out yet; -1: as it was.
        claimed_to: i64,
    }
}

message! {
    Commit,
    /// Stores how far a member has read.
    Commit {
        /// The group.
        group_id: i32,
        /// The member.
        member: String,
        /// Each partition at most once.
        cursors: Vec<Cursor>,
    }
}

message! {
    Commit,
    /// What was stored.
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
    /// Leaves a group; what the member owned is free at once.
    LeaveGroup {
        /// The group.
        group_id: i32,
        /// The member.
        member: String,
    }
}

message! {
    LeaveGroup,
    /// The member is out.
    Left {}
}

impl Ask for LeaveGroup {
    type Answer = Left;
}

message! {
    SkipLost,
    /// Retention took the records where a member wanted to go on: moves it to the first that is
    /// there.
    SkipLost {
        /// The group.
        group_id: i32,
        /// The member.
        member: String,
        /// The partition.
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
