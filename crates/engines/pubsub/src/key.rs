//! Which partition a key belongs to. `sql/record.sql` computes the same, so that every driver
//! agrees.

use crate::error::{Error, Result};

/// How keys find their partitions. A topic has the one that it was created with for good: with
/// another one its keys would move, and records of one key would no longer be in one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Partitioner {
    /// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv), modulo the number of partitions.
    #[default]
    Fnv1a,
    /// What the default partitioner of Kafka's Java client does, and `murmur2_random` of
    /// librdkafka: the lower 31 bits of murmur2, modulo the number of partitions.
    Murmur2,
}

impl Partitioner {
    /// The name in a topic's settings.
    pub fn name(self) -> &'static str {
        match self {
            Partitioner::Fnv1a => "fnv1a",
            Partitioner::Murmur2 => "murmur2",
        }
    }

    /// The partitioner of a name.
    ///
    /// # Errors
    /// `bad-argument` for any other than `fnv1a` and `murmur2`.
    pub fn named(name: &str) -> Result<Partitioner> {
        [Partitioner::Fnv1a, Partitioner::Murmur2]
            .into_iter()
            .find(|partitioner| partitioner.name() == name)
            .ok_or_else(|| {
                Error::bad_argument(format_args!(
                    "partitioner {name:?} is not one of fnv1a, murmur2"
                ))
            })
    }

    /// The partition of a key; `partitions` is at least 1.
    pub fn partition_of(self, key: &[u8], partitions: u32) -> u32 {
        let partitions = u64::from(partitions.max(1));
        let hash = match self {
            Partitioner::Fnv1a => hash(key),
            // Kafka takes the sign off a signed number, so the highest bit counts for nothing.
            Partitioner::Murmur2 => u64::from(murmur2(key) & 0x7fff_ffff),
        };
        u32::try_from(hash % partitions).unwrap_or(0)
    }
}

/// The hash that keys, chains and producers' names are stored by. It must never change.
pub(crate) fn hash<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

/// Murmur2, 32 bits (Austin Appleby), with the seed that Kafka gives it (`Utils.murmur2` of its
/// Java client).
fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const FACTOR: u32 = 0x5bd1_e995;
    // Kafka's lengths are signed numbers of 32 bits, and so is what comes of longer keys here.
    let mut hash = SEED ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        let word = (word ^ (word >> 24)).wrapping_mul(FACTOR);
        hash = hash.wrapping_mul(FACTOR) ^ word;
    }
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::{Partitioner, murmur2};

    #[test]
    fn published_values() {
        // The test vectors of the draft: "" and "a" and "foobar".
        for (key, hash) in [
            ("", 0xcbf2_9ce4_8422_2325_u64),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let partition = Partitioner::Fnv1a.partition_of(key.as_bytes(), 1_000_003);
            assert_eq!(u64::from(partition), hash % 1_000_003);
        }
    }

    #[test]
    fn murmur2_has_the_values_of_kafkas_own_test() {
        // `UtilsTest.testMurmur2` of Apache Kafka.
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn names_come_back() {
        for partitioner in [Partitioner::Fnv1a, Partitioner::Murmur2] {
            assert_eq!(Partitioner::named(partitioner.name()).unwrap(), partitioner);
        }
        let error = Partitioner::named("crc32").unwrap_err();
        assert_eq!(error.code(), "bad-argument");
    }
}
