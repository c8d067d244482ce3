//! Transactions of producers.

use super::{api, structure};

structure! {
    /// Partitions of one topic.
    AddPartitionsToTxnTopic {
        /// The name of the topic.
        name: String;
        partitions: Vec<i32>;
    }
}

structure! {
    /// Says to which partitions a transaction will write.
    AddPartitionsToTxnRequest {
        transactional_id: String;
        producer_id: i64;
        producer_epoch: i16;
        topics: Vec<AddPartitionsToTxnTopic>;
    }
}

structure! {
    /// Whether one partition is part of the transaction.
    AddPartitionsToTxnPartitionResult {
        /// The number of the partition.
        partition_index: i32;
        /// 0, or why it is not.
        partition_error_code: i16;
    }
}

structure! {
    /// Whether the partitions of one topic are.
    AddPartitionsToTxnTopicResult {
        /// The name of the topic.
        name: String;
        results_by_partition: Vec<AddPartitionsToTxnPartitionResult>;
    }
}

structure! {
    /// Whether the partitions are part of the transaction.
    AddPartitionsToTxnResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        results: Vec<AddPartitionsToTxnTopicResult>;
    }
}

// Version 4 is between servers.
api!(AddPartitionsToTxnRequest -> AddPartitionsToTxnResponse, 24, 0..=3, flexible 3);

structure! {
    /// Says that a transaction will store offsets of a group.
    AddOffsetsToTxnRequest {
        transactional_id: String;
        producer_id: i64;
        producer_epoch: i16;
        /// The name of the group.
        group_id: String;
    }
}

structure! {
    AddOffsetsToTxnResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// 0, or why it may not.
        error_code: i16;
    }
}

api!(AddOffsetsToTxnRequest -> AddOffsetsToTxnResponse, 25, 0..=3, flexible 3);

structure! {
    /// Ends a transaction.
    EndTxnRequest {
        transactional_id: String;
        producer_id: i64;
        producer_epoch: i16;
        /// Whether it is committed; else it had no effect.
        committed: bool;
    }
}

structure! {
    EndTxnResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// 0, or why it is not ended so.
        error_code: i16;
    }
}

api!(EndTxnRequest -> EndTxnResponse, 26, 0..=3, flexible 3);

structure! {
    /// How far a group has read one partition.
    TxnOffsetCommitRequestPartition {
        /// The number of the partition.
        partition_index: i32;
        /// The first offset that is not processed.
        committed_offset: i64;
        /// The epoch of the last record, which is not used here.
        committed_leader_epoch: i32, since 2;
        /// What the client wants to keep with it.
        committed_metadata: Option<String>;
    }
}

structure! {
    /// How far a group has read one topic.
    TxnOffsetCommitRequestTopic {
        /// The name of the topic.
        name: String;
        partitions: Vec<TxnOffsetCommitRequestPartition>;
    }
}

structure! {
    /// Stores how far a group has read, when the transaction is committed.
    TxnOffsetCommitRequest {
        transactional_id: String;
        /// The name of the group.
        group_id: String;
        producer_id: i64;
        producer_epoch: i16;
        /// The generation of the member; -1 for a consumer that is not a member.
        generation_id: i32, since 3;
        /// The member; empty for a consumer that is not one.
        member_id: String, since 3;
        /// A name of the member that outlives its process.
        group_instance_id: Option<String>, since 3;
        topics: Vec<TxnOffsetCommitRequestTopic>;
    }
}

structure! {
    /// Whether the offset of one partition is kept.
    TxnOffsetCommitResponsePartition {
        /// The number of the partition.
        partition_index: i32;
        /// 0, or why it is not.
        error_code: i16;
    }
}

structure! {
    /// Whether the offsets of one topic are kept.
    TxnOffsetCommitResponseTopic {
        /// The name of the topic.
        name: String;
        partitions: Vec<TxnOffsetCommitResponsePartition>;
    }
}

structure! {
    TxnOffsetCommitResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        topics: Vec<TxnOffsetCommitResponseTopic>;
    }
}

api!(TxnOffsetCommitRequest -> TxnOffsetCommitResponse, 28, 0..=3, flexible 3);
