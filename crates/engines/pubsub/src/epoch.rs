//! The epochs of producers, which a sequence carries in its upper bits.

/// A sequence has the epoch of its producer from this bit on.
pub const EPOCH_SHIFT: u32 = 48;

/// The epoch of a sequence; -1 for the sequence -1, which stands for a producer without records.
pub fn epoch(sequence: i64) -> i64 {
    sequence >> EPOCH_SHIFT
}

/// Whether a sequence is the first one of an epoch that comes after the last record's. Such a
/// sequence is taken although it does not follow, and records of the earlier epoch are refused from
/// then on. `last_sequence` is -1 if there is no record.
pub fn begins_epoch(first_sequence: i64, last_sequence: i64) -> bool {
    let is_first = first_sequence & ((1 << EPOCH_SHIFT) - 1) == 0;
    is_first && epoch(first_sequence) > epoch(last_sequence)
}
