//! Appending.

use super::message::message;
use super::{Ask, Rest};

message! {
    NewProducer,
    /// Asks for an id that no other producer has or had.
    NewProducer {}
}

message! {
    NewProducer,
    /// The id.
    ProducerId {
        /// It stands for one producer until that ends.
        producer_id: i64,
    }
}

impl Ask for NewProducer {
    type Answer = ProducerId;
}

message! {
    Produce,
    /// Appends records. Sent again with the same producer and sequence it appends nothing.
    Produce {
        /// The topic, from [`super::TopicIs`].
        topic_id: i32,
        /// The partition.
        partition: i32,
        /// Who appends.
        producer_id: i64,
        /// The sequence of the first record. Sequences count the producer's records of this
        /// partition, from 0.
        first_sequence: i64,
        /// Records in the body.
        count: u32,
        /// CRC32C of the body.
        crc: u32,
        /// Bits 0 and 1: 0 no compression, 1 LZ4, 2 zstd. All others 0.
        codec: u8,
        /// The records, in the form in which they are stored.
        body: Rest,
    }
}

message! {
    Produce,
    /// The records are committed.
    Produced {
        /// The offset of the first record; -1: a duplicate so old that its offset is not known any
        /// more.
        base_offset: i64,
        /// Whether they were there already, and nothing was appended.
        duplicate: bool,
    }
}

impl Ask for Produce {
    type Answer = Produced;
}
