//! Reading batches.

use bytes::Bytes;

use super::{api, structure};

structure! {
    /// Where to read one partition.
    FetchPartition {
        /// The number of the partition.
        partition: i32;
        /// The epoch that the client knows, which is not used here.
        current_leader_epoch: i32, since 9;
        /// The first offset that is wanted.
        fetch_offset: i64;
        /// Only for replicas that follow.
        last_fetched_epoch: i32, since 12;
        /// Only for replicas that follow.
        log_start_offset: i64, since 5;
        /// The most bytes of this partition, except that one record always comes.
        partition_max_bytes: i32;
    }
}

structure! {
    /// Where to read one topic.
    FetchTopic {
        /// The name of the topic.
        topic: String;
        partitions: Vec<FetchPartition>;
    }
}

structure! {
    /// Partitions that a session no longer contains.
    ForgottenTopic {
        /// The name of the topic.
        topic: String;
        partitions: Vec<i32>;
    }
}

structure! {
    /// Reads some partitions, or waits for records in any of them.
    FetchRequest {
        replica_id: i32;
        /// How long the response may wait, in milliseconds.
        max_wait_ms: i32;
        /// The response waits while there are fewer bytes than this.
        min_bytes: i32;
        /// The most bytes of the whole response, except that one record always comes.
        max_bytes: i32;
        /// 1 hides records of open transactions, which the log never has.
        isolation_level: i8;
        /// The session; 0 asks for one.
        session_id: i32, since 7;
        /// The place in the session; -1 asks for none.
        session_epoch: i32, since 7;
        topics: Vec<FetchTopic>;
        forgotten_topics_data: Vec<ForgottenTopic>, since 7;
        /// The rack of the consumer, which is not used here.
        rack_id: String, since 11;
    }
}

structure! {
    /// A transaction that was aborted, of which the log has none.
    AbortedTransaction {
        producer_id: i64;
        first_offset: i64;
    }
}

structure! {
    /// The records of one partition.
    FetchPartitionResponse {
        /// The number of the partition.
        partition_index: i32;
        /// 0, or why nothing was read.
        error_code: i16;
        /// The offset that the next record gets.
        high_watermark: i64;
        /// The same: a transaction is in the log only once it is committed.
        last_stable_offset: i64;
        /// The first offset that is still there.
        log_start_offset: i64, since 5;
        /// None: nothing of an aborted transaction is in the log.
        aborted_transactions: Option<Vec<AbortedTransaction>>;
        /// -1: a partition has one reader's place.
        preferred_read_replica: i32, since 11;
        records: Option<Bytes>;
    }
}

structure! {
    /// The records of one topic.
    FetchTopicResponse {
        /// The name of the topic.
        topic: String;
        partitions: Vec<FetchPartitionResponse>;
    }
}

structure! {
    FetchResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// 0, or why the whole request was refused.
        error_code: i16, since 7;
        /// Always 0: there are no sessions, so each request names all partitions.
        session_id: i32, since 7;
        responses: Vec<FetchTopicResponse>;
    }
}

api!(FetchRequest -> FetchResponse, 1, 4..=12, flexible 12);
