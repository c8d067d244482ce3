//! Appending records, and the ids of the producers that do.

use super::message::message;
use super::{Ask, Rest};

message! {
    NewProducer,
    /// Asks for an id that no other producer has or had.
    NewProducer {}
}

message! {
    NewProducer,
    /// The answer to [`NewProducer`].
    ProducerId {
        /// The id, which no other producer gets.
        producer_id: i64,
    }
}

impl Ask for NewProducer {
    type Answer = ProducerId;
}

message! {
    Produce,
    /// Appends records. A repetition with the same producer and sequence appends nothing.
    Produce {
        /// The number of the topic, from [`super::TopicIs`].
        topic_id: i32,
        /// The number of the partition.
        partition: i32,
        /// The id of the producer, from [`ProducerId`].
        producer_id: i64,
        /// The sequence of the first record. Sequences count the producer's records of this
        /// partition, from 0.
        first_sequence: i64,
        /// How many records the body holds.
        count: u32,
        /// CRC32C of the body as it is sent.
        crc: u32,
        /// Bits 0 and 1: 0 no compression, 1 LZ4, 2 zstd. All others 0.
        codec: u8,
        /// The records, in the form in which they are stored.
        body: Rest,
    }
}

message! {
    Produce,
    /// The answer to [`Produce`]: the records are committed.
    Produced {
        /// The offset of the first record. It is -1 for a duplicate so old that the server does not
        /// know its offset any more.
        base_offset: i64,
        /// Whether the records were in the log already, so that nothing was appended.
        duplicate: bool,
    }
}

impl Ask for Produce {
    type Answer = Produced;
}
