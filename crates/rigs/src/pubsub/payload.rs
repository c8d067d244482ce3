//! What a message of a measured run holds: when it was meant to be sent, who sent it, and bytes
//! that nothing compresses, which follow from writer and sequence so that a reader can judge them.
//!
//! `intended_ns u64 | writer u32 | sequence u64 | filler`, little-endian.

use dyno_measure::Call;
use dyno_random::Random;
use twox_hash::XxHash3_128;

/// Bytes of the three fields before the filler.
pub(super) const HEADER: usize = 20;

/// Which writer sent a message, and when it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Nanoseconds on the run's clock.
    pub intended_ns: u64,
    pub writer: u32,
    /// Counts from 0, in the writer's order.
    pub sequence: u64,
}

/// Overwrites `message` with the stamp and its filler.
pub(super) fn fill(message: &mut [u8], stamp: Stamp) {
    message[..8].copy_from_slice(&stamp.intended_ns.to_le_bytes());
    message[8..12].copy_from_slice(&stamp.writer.to_le_bytes());
    message[12..HEADER].copy_from_slice(&stamp.sequence.to_le_bytes());
    let seed = u64::from(stamp.writer) << 40 ^ stamp.sequence;
    Random::new(seed).fill(&mut message[HEADER..]);
}

/// Overwrites a batch of `writer` with the messages that belong to `call`, and returns the sum of
/// their digests.
pub(super) fn fill_batch(messages: &mut [Vec<u8>], writer: usize, call: Call) -> u64 {
    let count = messages.len() as u64;
    let mut sum = 0u64;
    for (position, message) in messages.iter_mut().enumerate() {
        let stamp = Stamp {
            intended_ns: call.intended_ns,
            writer: writer as u32,
            sequence: call.sequence * count + position as u64,
        };
        fill(message, stamp);
        sum = sum.wrapping_add(digest(message));
    }
    sum
}

/// Reads the stamp of a message; `None` if it is too short to be one of ours.
pub(super) fn stamp(message: &[u8]) -> Option<Stamp> {
    let (intended, rest) = message.split_first_chunk::<8>()?;
    let (writer, rest) = rest.split_first_chunk::<4>()?;
    let (sequence, _) = rest.split_first_chunk::<8>()?;
    Some(Stamp {
        intended_ns: u64::from_le_bytes(*intended),
        writer: u32::from_le_bytes(*writer),
        sequence: u64::from_le_bytes(*sequence),
    })
}

/// A digest of all of a message but its time. Wrapping sums of it tell whether the same messages
/// arrived, in any order.
pub(super) fn digest(message: &[u8]) -> u64 {
    XxHash3_128::oneshot(&message[8..]) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_who_sent_it_and_differs_from_the_next() {
        let mut message = vec![0; 1_024];
        let first = Stamp {
            intended_ns: 5,
            writer: 3,
            sequence: 9,
        };
        fill(&mut message, first);
        assert_eq!(stamp(&message), Some(first));
        let digest_first = digest(&message);
        fill(
            &mut message,
            Stamp {
                intended_ns: 6,
                ..first
            },
        );
        assert_eq!(digest(&message), digest_first, "the time is not part of it");
        fill(
            &mut message,
            Stamp {
                sequence: 10,
                ..first
            },
        );
        assert_ne!(digest(&message), digest_first);
        assert_eq!(stamp(&message[..HEADER - 1]), None);
    }
}
