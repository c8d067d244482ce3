//! What a message of a check carries: its producer, its number, when it was due, and a checksum.
//!
//! Big-endian: magic u32, producer u32, partition u32, sequence u64, due time i64 (microseconds
//! since 1970), filler, checksum u64 (FNV-1a 64 over all before it). The filler is drawn from the
//! identity, so it does not compress and no two messages are alike.

use std::fmt;

use dyno_sim::Random;
use serde::{Deserialize, Serialize};

const MAGIC: u32 = 0x6479_636b;
const HEAD_BYTES: usize = 28;
const CHECKSUM_BYTES: usize = 8;

/// The length of the shortest content, which has no filler, in bytes.
pub const SHORTEST_BYTES: usize = HEAD_BYTES + CHECKSUM_BYTES;

/// The identity of a message. No two messages of a run have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// One life of one producing process; a new life has a new number.
    #[serde(rename = "p")]
    pub producer: u32,
    /// The partition that its key belongs to.
    #[serde(rename = "q")]
    pub partition: u32,
    /// Counted from 0 for each producer and partition, in the order of sending.
    #[serde(rename = "s")]
    pub sequence: u64,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity {
            producer,
            partition,
            sequence,
        } = self;
        write!(
            f,
            "message {sequence} of producer {producer} for partition {partition}"
        )
    }
}

/// What identifies a message that was read back, and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The identity, unique in a run.
    #[serde(flatten)]
    pub identity: Identity,
    /// The checksum of the content, by which two contents under one identity differ.
    #[serde(rename = "c")]
    pub checksum: u64,
}

/// A message that was read back, with the time at which it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// The identity, and the checksum, which was verified.
    pub fingerprint: Fingerprint,
    /// When it was due to be sent, microseconds since 1970.
    pub due_us: i64,
}

/// The reason why bytes are not a message of a check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// There are too few bytes.
    #[error("{found} bytes, and the shortest message has {SHORTEST_BYTES}")]
    Short {
        /// How many bytes there are.
        found: usize,
    },
    /// Other bytes where the magic should be.
    #[error("it begins with {found:08x} and not with {MAGIC:08x}")]
    Magic {
        /// The bytes in the place of the magic.
        found: u32,
    },
    /// The content is not what was sent.
    #[error("its checksum says {stated:016x} and its bytes have {found:016x}")]
    Checksum {
        /// The checksum that the content ends with.
        stated: u64,
        /// The checksum of the bytes before it.
        found: u64,
    },
}

/// Writes a message of `bytes` length, at least [`SHORTEST_BYTES`]. Returns its bytes and its
/// fingerprint.
pub fn write(identity: Identity, due_us: i64, bytes: usize) -> (Vec<u8>, Fingerprint) {
    let mut content = Vec::with_capacity(bytes.max(SHORTEST_BYTES));
    content.extend_from_slice(&MAGIC.to_be_bytes());
    content.extend_from_slice(&identity.producer.to_be_bytes());
    content.extend_from_slice(&identity.partition.to_be_bytes());
    content.extend_from_slice(&identity.sequence.to_be_bytes());
    content.extend_from_slice(&due_us.to_be_bytes());
    // The filler is seeded by the identity, so a message that is made again is the same to the
    // byte, and a mix of two messages fails the checksum.
    let place = (u64::from(identity.producer) << 32) | u64::from(identity.partition);
    let mut random = Random::new(place ^ identity.sequence.rotate_left(40));
    let end = bytes.max(SHORTEST_BYTES) - CHECKSUM_BYTES;
    while content.len() < end {
        let left = (end - content.len()).min(8);
        content.extend_from_slice(&random.bits().to_be_bytes()[..left]);
    }
    let checksum = fnv1a(&content);
    content.extend_from_slice(&checksum.to_be_bytes());
    (content, Fingerprint { identity, checksum })
}

/// Reads a message back and verifies its checksum.
pub fn read(content: &[u8]) -> Result<Content, ContentError> {
    if content.len() < SHORTEST_BYTES {
        return Err(ContentError::Short {
            found: content.len(),
        });
    }
    let u32_at = |at: usize| u64_of(&content[at..at + 4]) as u32;
    let found = u32_at(0);
    if found != MAGIC {
        return Err(ContentError::Magic { found });
    }
    let (body, checksum) = content.split_at(content.len() - CHECKSUM_BYTES);
    let (stated, found) = (u64_of(checksum), fnv1a(body));
    if stated != found {
        return Err(ContentError::Checksum { stated, found });
    }
    Ok(Content {
        fingerprint: Fingerprint {
            identity: Identity {
                producer: u32_at(4),
                partition: u32_at(8),
                sequence: u64_of(&content[12..20]),
            },
            checksum: stated,
        },
        due_us: u64_of(&content[20..28]) as i64,
    })
}

fn u64_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, b| (sum << 8) | u64::from(*b))
}

/// FNV-1a, 64 bits (RFC 9923, section 2): the check's own, so that it shares no code with what it
/// judges.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The partition that a key belongs to, by the documented rule.
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    (fnv1a(key) % u64::from(partitions.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity {
        producer: 7,
        partition: 3,
        sequence: 1 << 40,
    };

    #[test]
    fn a_message_comes_back_as_it_was_made() {
        for bytes in [0, SHORTEST_BYTES, 41, 1000] {
            let (content, fingerprint) = write(IDENTITY, -5, bytes);
            assert_eq!(content.len(), bytes.max(SHORTEST_BYTES));
            let found = read(&content).unwrap();
            assert_eq!((found.fingerprint, found.due_us), (fingerprint, -5));
        }
    }

    #[test]
    fn any_changed_byte_is_seen() {
        let (content, _) = write(IDENTITY, 0, 60);
        for at in 0..content.len() {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            assert!(read(&damaged).is_err(), "byte {at}");
        }
        assert!(read(&content[1..]).is_err());
        assert!(read(&[]).is_err());
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
