//! Appending batches, and the ids of producers.

use bytes::Bytes;

use super::{api, structure};

structure! {
    /// The batch of one partition.
    PartitionProduceData {
        /// The number of the partition.
        index: i32;
        records: Option<Bytes>;
    }
}

structure! {
    /// The batches of one topic.
    TopicProduceData {
        /// The name of the topic.
        name: String;
        partition_data: Vec<PartitionProduceData>;
    }
}

structure! {
    /// Appends one batch to each of some partitions.
    ProduceRequest {
        transactional_id: Option<String>;
        /// 0: no response. 1 and -1: a response after the commit.
        acks: i16;
        /// How long the client waits.
        timeout_ms: i32;
        topic_data: Vec<TopicProduceData>;
    }
}

structure! {
    /// A record that was refused.
    BatchIndexAndErrorMessage {
        /// Its place in the batch.
        batch_index: i32;
        batch_index_error_message: Option<String>;
    }
}

structure! {
    /// What became of the batch of one partition.
    PartitionProduceResponse {
        /// The number of the partition.
        index: i32;
        /// 0, or why nothing was appended.
        error_code: i16;
        /// The offset of the first record.
        base_offset: i64;
        /// Always -1: records keep the time of their producer.
        log_append_time_ms: i64;
        /// The first offset of the log; -1 if it was not looked up.
        log_start_offset: i64, since 5;
        /// Always empty: a batch is taken or refused as a whole.
        record_errors: Vec<BatchIndexAndErrorMessage>, since 8;
        error_message: Option<String>, since 8;
    }
}

structure! {
    /// What became of the batches of one topic.
    TopicProduceResponse {
        /// The name of the topic.
        name: String;
        partition_responses: Vec<PartitionProduceResponse>;
    }
}

structure! {
    /// What became of the batches.
    ProduceResponse {
        responses: Vec<TopicProduceResponse>;
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
    }
}

api!(ProduceRequest -> ProduceResponse, 0, 3..=9, flexible 9);

structure! {
    /// Asks for an id for an idempotent producer, or for one with transactions.
    InitProducerIdRequest {
        transactional_id: Option<String>;
        transaction_timeout_ms: i32;
        /// The id that the producer had.
        producer_id: i64, since 3;
        /// The epoch that the producer had.
        producer_epoch: i16, since 3;
    }
}

structure! {
    InitProducerIdResponse {
        /// Always 0: nothing is throttled.
        throttle_time_ms: i32;
        /// 0, or why there is no id.
        error_code: i16;
        producer_id: i64;
        /// The epoch, which the producer itself raises.
        producer_epoch: i16;
    }
}

api!(InitProducerIdRequest -> InitProducerIdResponse, 22, 0..=4, flexible 2);
