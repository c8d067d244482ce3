//! Topics and where their partitions are.

use super::message::{fields, message};
use super::{Added, Ask};
use crate::key::Partitioner;
use crate::topic::TopicOptions;

message! {
    Metadata,
    /// Asks where the partitions of a topic are.
    Metadata {
        /// The name of the topic.
        topic: String,
    }
}

fields! {
    /// A partition, and the broker that serves it.
    PartitionIs {
        /// The number of the partition.
        partition: i32,
        /// The epoch of its broker; it grows with every change.
        epoch: i64,
        /// The first offset that is still there.
        first_offset: i64,
        /// The offset that the next record will get, as last seen.
        next_offset: i64,
        /// The address of its broker; empty if it has none at present.
        address: String,
    }
}

message! {
    Metadata,
    /// A topic and where its partitions are.
    TopicIs {
        /// Its number, for the requests that come often.
        topic_id: i32,
        /// How its rows are to be compressed: `none`, `lz4` or `zstd`.
        compression: String,
        /// All partitions, ordered by number.
        partitions: Vec<PartitionIs>,
        /// How keys find their partitions.
        partitioner: Added<Partitioner>,
    }
}

impl Ask for Metadata {
    type Answer = TopicIs;
}

message! {
    CreateTopic,
    /// Creates a topic. Its partitions find a broker within a moment.
    CreateTopic {
        /// Its name: 1 to 100 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`.
        topic: String,
        /// How many partitions the topic gets.
        partitions: i32,
        /// How its rows are to be compressed: `none`, `lz4` or `zstd`.
        compression: String,
        /// How long records are kept, in milliseconds; -1 keeps them for ever.
        retention_ms: i64,
        /// How many bytes of each partition are kept; -1 keeps all.
        retention_bytes: i64,
        /// How keys find their partitions.
        partitioner: Added<Partitioner>,
    }
}

message! {
    CreateTopic,
    /// The answer to [`CreateTopic`]: the topic exists.
    Created {
        /// The number of the topic.
        topic_id: i32,
    }
}

impl CreateTopic {
    /// Creates a topic of this name with those of these settings that a broker is told.
    pub fn new(topic: &str, options: &TopicOptions) -> CreateTopic {
        CreateTopic {
            topic: topic.to_owned(),
            partitions: i32::try_from(options.partitions).unwrap_or(i32::MAX),
            compression: options.compression.name().to_owned(),
            retention_ms: options.retention_ms.unwrap_or(-1),
            retention_bytes: options.retention_bytes.unwrap_or(-1),
            partitioner: Added(options.partitioner),
        }
    }
}

impl Ask for CreateTopic {
    type Answer = Created;
}
