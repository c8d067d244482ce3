//! What a partition recognises repetitions by.

/// A producer on one partition. A batch that is sent twice carries the same id and sequence both
/// times, so the second is not appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    /// The number that the server or broker gave to the producer.
    pub producer_id: i64,
    /// The sequence number of the producer's next record on the partition.
    pub next_sequence: i64,
}
