//! Creating, changing and deleting topics, and deleting their records.

use super::{api, structure};

structure! {
    /// The servers that one partition is to be on.
    CreatableReplicas {
        /// The number of the partition.
        partition_index: i32;
        broker_ids: Vec<i32>;
    }
}

structure! {
    CreatableConfig {
        name: String;
        value: Option<String>;
    }
}

structure! {
    CreatableTopic {
        name: String;
        /// How many partitions; -1 for one.
        num_partitions: i32;
        /// How many copies: 1, or -1 for the default. Further copies are PostgreSQL's.
        replication_factor: i16;
        /// Must be empty: servers share partitions themselves.
        assignments: Vec<CreatableReplicas>;
        configs: Vec<CreatableConfig>;
    }
}

structure! {
    CreateTopicsRequest {
        topics: Vec<CreatableTopic>;
        /// How long the client waits.
        timeout_ms: i32;
        /// Whether to only say what would become of it.
        validate_only: bool;
    }
}

structure! {
    /// A setting of a topic that was created.
    CreatedConfig {
        name: String;
        value: Option<String>;
        /// Whether it cannot be changed.
        read_only: bool;
        /// Where the value is from.
        config_source: i8;
        is_sensitive: bool;
    }
}

structure! {
    /// What became of one topic.
    CreatedTopic {
        name: String;
        /// 0, or why it was not created.
        error_code: i16;
        /// Why it was not created.
        error_message: Option<String>;
        /// How many partitions it has.
        num_partitions: i32, since 5;
        replication_factor: i16, since 5;
        /// Its settings; null for a topic that was not created.
        configs: Option<Vec<CreatedConfig>>, since 5;
    }
}

structure! {
    /// What became of the topics.
    CreateTopicsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        topics: Vec<CreatedTopic>;
    }
}

api!(CreateTopicsRequest -> CreateTopicsResponse, 19, 2..=6, flexible 5);

structure! {
    /// Deletes topics with their records and groups.
    DeleteTopicsRequest {
        /// The names of the topics.
        topic_names: Vec<String>;
        /// How long the client waits.
        timeout_ms: i32;
    }
}

structure! {
    /// What became of one topic.
    DeletedTopic {
        name: String;
        /// 0, or why it is still there.
        error_code: i16;
        /// Why it is still there.
        error_message: Option<String>, since 5;
    }
}

structure! {
    /// What became of the topics.
    DeleteTopicsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        responses: Vec<DeletedTopic>;
    }
}

api!(DeleteTopicsRequest -> DeleteTopicsResponse, 20, 1..=5, flexible 4);

structure! {
    /// How much of one partition to delete.
    DeleteRecordsPartition {
        /// The number of the partition.
        partition_index: i32;
        /// The first offset that stays; -1 for the end of the partition.
        offset: i64;
    }
}

structure! {
    /// How much of one topic to delete.
    DeleteRecordsTopic {
        /// The name of the topic.
        name: String;
        partitions: Vec<DeleteRecordsPartition>;
    }
}

structure! {
    DeleteRecordsRequest {
        topics: Vec<DeleteRecordsTopic>;
        /// How long the client waits.
        timeout_ms: i32;
    }
}

structure! {
    /// What became of one partition.
    DeleteRecordsPartitionResult {
        /// The number of the partition.
        partition_index: i32;
        /// The first offset that is left; -1 if nothing was deleted.
        low_watermark: i64;
        /// 0, or why nothing was deleted.
        error_code: i16;
    }
}

structure! {
    /// What became of one topic.
    DeleteRecordsTopicResult {
        /// The name of the topic.
        name: String;
        partitions: Vec<DeleteRecordsPartitionResult>;
    }
}

structure! {
    /// What became of the partitions.
    DeleteRecordsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        topics: Vec<DeleteRecordsTopicResult>;
    }
}

api!(DeleteRecordsRequest -> DeleteRecordsResponse, 21, 0..=2, flexible 2);

structure! {
    /// The servers that a new partition is to be on.
    CreatePartitionsAssignment {
        broker_ids: Vec<i32>;
    }
}

structure! {
    /// A topic that gets more partitions.
    CreatePartitionsTopic {
        name: String;
        /// How many partitions it is to have in all.
        count: i32;
        /// Must be null: servers share partitions themselves.
        assignments: Option<Vec<CreatePartitionsAssignment>>;
    }
}

structure! {
    CreatePartitionsRequest {
        topics: Vec<CreatePartitionsTopic>;
        /// How long the client waits.
        timeout_ms: i32;
        /// Whether to only say what would become of it.
        validate_only: bool;
    }
}

structure! {
    /// What became of one topic.
    CreatePartitionsResult {
        name: String;
        /// 0, or why it has no more partitions.
        error_code: i16;
        /// Why it has no more partitions.
        error_message: Option<String>;
    }
}

structure! {
    /// What became of the topics.
    CreatePartitionsResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// In the order of the request.
        results: Vec<CreatePartitionsResult>;
    }
}

api!(CreatePartitionsRequest -> CreatePartitionsResponse, 37, 0..=3, flexible 2);
