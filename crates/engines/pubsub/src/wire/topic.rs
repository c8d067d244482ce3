//! Topics and where their partitions are.

use super::Ask;
use super::message::{fields, message};

message! {
    Metadata,
    /// Asks where the partitions of a topic are.
    Metadata {
        /// The topic's name.
        topic: String,
    }
}

fields! {
    /// One partition.
    PartitionIs {
        /// Its number.
        partition: i32,
        /// The epoch of its broker; it grows with every change.
        epoch: i64,
        /// The first offset that is still there.
        first_offset: i64,
        /// The offset that the next record will get, as last seen.
        next_offset: i64,
        /// The address of its broker; empty: it has none at present.
        address: String,
    }
}

message! {
    Metadata,
    /// A topic.
    TopicIs {
        /// Its number, for the requests that come often.
        topic_id: i32,
        /// How its rows are to be compressed: `none`, `lz4` or `zstd`.
        compression: String,
        /// All partitions, by number.
        partitions: Vec<PartitionIs>,
    }
}

impl Ask for Metadata {
    type Answer = TopicIs;
}

message! {
    CreateTopic,
    /// Makes a topic; its partitions find a broker within a moment.
    CreateTopic {
        /// Its name: 1 to 100 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`.
        topic: String,
        /// How many partitions.
        partitions: i32,
        /// `none`, `lz4` or `zstd`.
        compression: String,
        /// How long records are kept, in milliseconds; -1: for ever.
        retention_ms: i64,
        /// How many bytes are kept in each partition; -1: all.
        retention_bytes: i64,
    }
}

message! {
    CreateTopic,
    /// The topic is made.
    Created {
        /// Its number.
        topic_id: i32,
    }
}

impl Ask for CreateTopic {
    type Answer = Created;
}
