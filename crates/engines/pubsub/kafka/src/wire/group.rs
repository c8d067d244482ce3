//! Membership of groups.

use bytes::Bytes;

use super::{api, structure};

structure! {
    /// Asks which server coordinates a group or a transaction.
    FindCoordinatorRequest {
        /// The name of the group, or the transactional id.
        key: String;
        /// 0 for a group, 1 for a transaction.
        key_type: i8, since 1;
    }
}

structure! {
    FindCoordinatorResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 1;
        /// 0, or why there is none.
        error_code: i16;
        error_message: Option<String>, since 1;
        node_id: i32;
        /// The host that clients connect to.
        host: String;
        port: i32;
    }
}

api!(FindCoordinatorRequest -> FindCoordinatorResponse, 10, 0..=3, flexible 3);

structure! {
    /// A way to share partitions that a member knows.
    JoinGroupProtocol {
        name: String;
        /// What the leader needs of this member.
        metadata: Bytes;
    }
}

structure! {
    /// Enters a group. The answer waits until all members have joined.
    JoinGroupRequest {
        /// The name of the group.
        group_id: String;
        /// A member that is silent for so long is removed.
        session_timeout_ms: i32;
        /// How long the others may take to join again; the session's timeout in version 0.
        rebalance_timeout_ms: i32, since 1;
        /// The member; empty for one that is new.
        member_id: String;
        /// A name of the member that outlives its process.
        group_instance_id: Option<String>, since 5;
        /// What kind of members these are, such as `consumer`.
        protocol_type: String;
        /// What the member knows, best first.
        protocols: Vec<JoinGroupProtocol>;
    }
}

structure! {
    /// A member, as its leader sees it.
    JoinGroupMember {
        member_id: String;
        /// A name of the member that outlives its process.
        group_instance_id: Option<String>, since 5;
        /// What it says of itself.
        metadata: Bytes;
    }
}

structure! {
    /// The group of a new generation.
    JoinGroupResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 2;
        /// 0, or why the member is not in the group.
        error_code: i16;
        generation_id: i32;
        /// The way to share partitions that all members know.
        protocol_name: String;
        /// The member that shares the partitions out.
        leader: String;
        member_id: String;
        /// All members, for the leader only.
        members: Vec<JoinGroupMember>;
    }
}

api!(JoinGroupRequest -> JoinGroupResponse, 11, 0..=5, flexible 6);

structure! {
    SyncGroupAssignment {
        member_id: String;
        /// Its partitions, as the members write them.
        assignment: Bytes;
    }
}

structure! {
    /// Brings what each member gets, if it comes from the leader, and asks for what this one gets.
    SyncGroupRequest {
        /// The name of the group.
        group_id: String;
        generation_id: i32;
        member_id: String;
        /// A name of the member that outlives its process.
        group_instance_id: Option<String>, since 3;
        /// By member, from the leader only.
        assignments: Vec<SyncGroupAssignment>;
    }
}

structure! {
    SyncGroupResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 1;
        /// 0, or why it gets nothing.
        error_code: i16;
        /// Its partitions, as the members write them.
        assignment: Bytes;
    }
}

api!(SyncGroupRequest -> SyncGroupResponse, 14, 0..=3, flexible 4);

structure! {
    /// Says that a member lives.
    HeartbeatRequest {
        /// The name of the group.
        group_id: String;
        generation_id: i32;
        member_id: String;
        /// A name of the member that outlives its process.
        group_instance_id: Option<String>, since 3;
    }
}

structure! {
    /// Whether the member may go on.
    HeartbeatResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 1;
        /// 0, or that it has to join again.
        error_code: i16;
    }
}

api!(HeartbeatRequest -> HeartbeatResponse, 12, 0..=3, flexible 4);

structure! {
    LeavingMember {
        /// The member; empty if only its lasting name is known, as it is to an administrator.
        member_id: String;
        /// A name of the member that outlives its process.
        group_instance_id: Option<String>;
    }
}

structure! {
    LeaveGroupRequest {
        /// The name of the group.
        group_id: String;
        member_id: String, until 2;
        members: Vec<LeavingMember>, since 3;
    }
}

structure! {
    /// Whether one member has left.
    LeftMember {
        member_id: String;
        /// A name of the member that outlives its process.
        group_instance_id: Option<String>;
        /// 0, or that it was not a member.
        error_code: i16;
    }
}

structure! {
    /// Whether the members have left.
    LeaveGroupResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 1;
        /// 0, or that it was not a member; from version 3 on each member has its own.
        error_code: i16;
        /// In the order of the request.
        members: Vec<LeftMember>, since 3;
    }
}

api!(LeaveGroupRequest -> LeaveGroupResponse, 13, 0..=3, flexible 4);
