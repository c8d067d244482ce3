//! Groups as an administrator sees them.

use bytes::Bytes;

use super::{api, structure};

structure! {
    /// Asks for groups with their members.
    DescribeGroupsRequest {
        /// The names of the groups.
        groups: Vec<String>;
        /// Whether to list what the client may do, which is not known here.
        include_authorized_operations: bool, since 3;
    }
}

structure! {
    DescribedMember {
        member_id: String;
        /// A name of the member that outlives its process.
        group_instance_id: Option<String>, since 4;
        /// What its client calls itself.
        client_id: String;
        client_host: String;
        /// What it says of itself.
        member_metadata: Bytes;
        /// Its partitions, as the members write them.
        member_assignment: Bytes;
    }
}

structure! {
    DescribedGroup {
        /// 0, or why it is not known.
        error_code: i16;
        group_id: String;
        /// `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`.
        group_state: String;
        /// What kind of members these are.
        protocol_type: String;
        /// The way to share partitions that was chosen.
        protocol_data: String;
        members: Vec<DescribedMember>;
        /// What the client may do; the least number where it is not known.
        authorized_operations: i32, since 3;
    }
}

structure! {
    DescribeGroupsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 1;
        /// In the order of the request.
        groups: Vec<DescribedGroup>;
    }
}

api!(DescribeGroupsRequest -> DescribeGroupsResponse, 15, 0..=4, flexible 5);

structure! {
    /// Asks for all groups of this coordinator.
    ListGroupsRequest {
        /// Only groups in these states; all if it is empty.
        states_filter: Vec<String>, since 4;
    }
}

structure! {
    ListedGroup {
        group_id: String;
        /// What kind of members these are; empty if there are none.
        protocol_type: String;
        group_state: String, since 4;
    }
}

structure! {
    ListGroupsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 1;
        /// 0, or why they are not known.
        error_code: i16;
        groups: Vec<ListedGroup>;
    }
}

api!(ListGroupsRequest -> ListGroupsResponse, 16, 0..=4, flexible 3);

structure! {
    /// Deletes groups with their offsets.
    DeleteGroupsRequest {
        /// The names of the groups.
        groups_names: Vec<String>;
    }
}

structure! {
    /// Whether one group is gone.
    DeletedGroup {
        group_id: String;
        /// 0, or why it is not.
        error_code: i16;
    }
}

structure! {
    /// Whether the groups are gone.
    DeleteGroupsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        results: Vec<DeletedGroup>;
    }
}

api!(DeleteGroupsRequest -> DeleteGroupsResponse, 42, 0..=2, flexible 2);
