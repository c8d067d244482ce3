//! Which partition a key belongs to: FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv), modulo
//! the number of partitions. `sql/record.sql` computes the same, so that every driver agrees.

/// The partition of a key; `partitions` is at least 1.
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    u32::try_from(hash(key) % u64::from(partitions.max(1))).unwrap_or(0)
}

/// The hash that keys, chains and producers' names are stored by. It must never change.
pub(crate) fn hash<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

#[cfg(test)]
mod tests {
    use super::partition_of;

    #[test]
    fn published_values() {
        // The test vectors of the draft: "" and "a" and "foobar".
        for (key, hash) in [
            ("", 0xcbf2_9ce4_8422_2325_u64),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(
                u64::from(partition_of(key.as_bytes(), 1_000_003)),
                hash % 1_000_003
            );
        }
    }
}
