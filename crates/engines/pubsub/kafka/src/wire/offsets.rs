//! Finding offsets, and keeping those of groups.

use super::{api, structure};

structure! {
    /// The moment whose offset is wanted in one partition.
    ListOffsetsPartition {
        /// The number of the partition.
        partition_index: i32;
        /// The epoch that the client knows, which is not used here.
        current_leader_epoch: i32, since 4;
        /// Milliseconds since 1970; -1 for the end, -2 for the beginning.
        timestamp: i64;
    }
}

structure! {
    /// The moments of one topic.
    ListOffsetsTopic {
        /// The name of the topic.
        name: String;
        partitions: Vec<ListOffsetsPartition>;
    }
}

structure! {
    /// Asks for the offset of the first record from a moment on.
    ListOffsetsRequest {
        replica_id: i32;
        /// 1 hides records of open transactions, which the log never has.
        isolation_level: i8, since 2;
        topics: Vec<ListOffsetsTopic>;
    }
}

structure! {
    /// The offset in one partition.
    ListOffsetsPartitionResponse {
        /// The number of the partition.
        partition_index: i32;
        /// 0, or why it was not found.
        error_code: i16;
        /// The time of the record; -1 at the beginning and the end.
        timestamp: i64;
        /// The offset; -1 if no record is so late.
        offset: i64;
        /// -1: epochs are not told to clients.
        leader_epoch: i32, since 4;
    }
}

structure! {
    /// The offsets in one topic.
    ListOffsetsTopicResponse {
        /// The name of the topic.
        name: String;
        partitions: Vec<ListOffsetsPartitionResponse>;
    }
}

structure! {
    ListOffsetsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 2;
        topics: Vec<ListOffsetsTopicResponse>;
    }
}

api!(ListOffsetsRequest -> ListOffsetsResponse, 2, 1..=6, flexible 6);

structure! {
    /// How far a group has read one partition.
    OffsetCommitPartition {
        /// The number of the partition.
        partition_index: i32;
        /// The first offset that is not processed.
        committed_offset: i64;
        /// The epoch of the last record, which is not used here.
        committed_leader_epoch: i32, since 6;
        /// What the client wants to keep with it.
        committed_metadata: Option<String>;
    }
}

structure! {
    /// How far a group has read one topic.
    OffsetCommitTopic {
        /// The name of the topic.
        name: String;
        partitions: Vec<OffsetCommitPartition>;
    }
}

structure! {
    /// Stores how far a group has read.
    OffsetCommitRequest {
        /// The name of the group.
        group_id: String;
        /// The generation of the member; -1 for a consumer that is not a member.
        generation_id: i32;
        /// The member; empty for a consumer that is not one.
        member_id: String;
        /// A name of the member that outlives its process.
        group_instance_id: Option<String>, since 7;
        /// How long to keep it, which is for ever here.
        retention_time_ms: i64, until 4;
        topics: Vec<OffsetCommitTopic>;
    }
}

structure! {
    /// Whether the offset of one partition is stored.
    OffsetCommitPartitionResponse {
        /// The number of the partition.
        partition_index: i32;
        /// 0, or why it is not.
        error_code: i16;
    }
}

structure! {
    /// Whether the offsets of one topic are stored.
    OffsetCommitTopicResponse {
        /// The name of the topic.
        name: String;
        partitions: Vec<OffsetCommitPartitionResponse>;
    }
}

structure! {
    /// Whether the offsets are stored.
    OffsetCommitResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 3;
        topics: Vec<OffsetCommitTopicResponse>;
    }
}

api!(OffsetCommitRequest -> OffsetCommitResponse, 8, 2..=7, flexible 8);

structure! {
    /// The partitions of one topic.
    OffsetFetchTopic {
        /// The name of the topic.
        name: String;
        partition_indexes: Vec<i32>;
    }
}

structure! {
    /// Asks how far a group has read.
    OffsetFetchRequest {
        /// The name of the group.
        group_id: String;
        /// The partitions; all that the group has read if it is null.
        topics: Option<Vec<OffsetFetchTopic>>;
        /// Whether to refuse partitions of which an open transaction will store offsets.
        require_stable: bool, since 7;
    }
}

structure! {
    /// How far one partition was read.
    OffsetFetchPartitionResponse {
        /// The number of the partition.
        partition_index: i32;
        /// The first offset that is not processed; -1 if none was stored.
        committed_offset: i64;
        /// -1: epochs are not told to clients.
        committed_leader_epoch: i32, since 5;
        /// What the client wanted to keep with it.
        metadata: Option<String>;
        /// 0, or why it is not known.
        error_code: i16;
    }
}

structure! {
    /// How far one topic was read.
    OffsetFetchTopicResponse {
        /// The name of the topic.
        name: String;
        partitions: Vec<OffsetFetchPartitionResponse>;
    }
}

structure! {
    /// How far a group has read.
    OffsetFetchResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32, since 3;
        topics: Vec<OffsetFetchTopicResponse>;
        /// 0, or why the whole request was refused.
        error_code: i16, since 2;
    }
}

api!(OffsetFetchRequest -> OffsetFetchResponse, 9, 1..=7, flexible 6);
