//! Placement: which partition has a row, and which ones a scan must ask.

use dyno_txn_api::{Partitioning, Scan, TableDef};

use crate::message::PartitionId;

/// The partition of a key of the table, among `partitions`.
pub fn partition_of(def: &TableDef, partitions: u32, key: &[u8]) -> PartitionId {
    if partitions == 1 {
        return 0;
    }
    match &def.partitioning {
        Partitioning::Hash { prefix } => {
            let prefix = match usize::from(*prefix) {
                0 => key,
                bytes => &key[..bytes.min(key.len())],
            };
            // The remainder of a multiplication takes high bits, which CRC32C mixes as well as low
            // ones.
            ((u64::from(dyno_checksum::crc32c(prefix)) * u64::from(partitions)) >> 32) as u32
        }
        Partitioning::Range { splits } => {
            let range = splits.partition_point(|split| &**split <= key);
            (range as u64 * u64::from(partitions) / (splits.len() as u64 + 1)) as u32
        }
    }
}

/// The partitions that may have rows of a scan, in ascending order.
pub fn partitions_of(def: &TableDef, partitions: u32, scan: &Scan) -> Vec<PartitionId> {
    let shared = match scan.index {
        None => usize::MAX,
        Some(index) => match def.indexes.get(usize::from(index)) {
            Some(index) => usize::from(index.shared_prefix),
            None => 0,
        },
    };
    match &def.partitioning {
        Partitioning::Hash { prefix } => {
            let prefix = usize::from(*prefix);
            let fixed = fixed_prefix(scan);
            if prefix > 0 && prefix <= shared && fixed.len() >= prefix {
                return vec![partition_of(def, partitions, fixed)];
            }
        }
        Partitioning::Range { splits } => {
            if splits.iter().all(|split| split.len() <= shared) {
                let first = partition_of(def, partitions, &scan.start);
                let last = match &scan.end {
                    Some(end) => partition_of(def, partitions, end),
                    None => partitions - 1,
                };
                return (first..=last.max(first)).collect();
            }
        }
    }
    (0..partitions).collect()
}

/// The bytes that all keys of the range begin with.
fn fixed_prefix(scan: &Scan) -> &[u8] {
    let Some(end) = &scan.end else { return &[] };
    let same = scan
        .start
        .iter()
        .zip(end)
        .take_while(|(a, b)| a == b)
        .count();
    // The range of all keys with prefix `p` ends at `p` with its last byte raised by one, so the
    // two differ there although every key of the range begins with `p`.
    let ends_prefix = end.len() == same + 1
        && scan
            .start
            .get(same)
            .is_some_and(|byte| byte.checked_add(1) == end.last().copied());
    if !ends_prefix {
        return &scan.start[..same];
    }
    // Bytes of the start that are 0xff behind it cannot be exceeded within the range, so they are
    // fixed too.
    let more = scan.start[same + 1..]
        .iter()
        .take_while(|byte| **byte == 0xff);
    &scan.start[..same + 1 + more.count()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_txn_api::{TableId, Tuple};

    #[test]
    fn a_fixed_prefix_asks_one_partition_and_it_is_the_rows() {
        let def = TableDef::hash("orders", 8);
        for warehouse in [0u64, 1, 254, 255, 256, u64::MAX - 1] {
            let scan = Scan::prefix(TableId(1), Tuple::new().u64(warehouse).finish());
            let key = Tuple::new().u64(warehouse).u64(77).finish();
            assert_eq!(partitions_of(&def, 7, &scan), [partition_of(&def, 7, &key)]);
        }
        assert_eq!(partitions_of(&def, 7, &Scan::all(TableId(1))).len(), 7);
    }

    #[test]
    fn ranges_ask_those_they_touch() {
        let def = TableDef::range("t", vec![b"d".to_vec(), b"m".to_vec(), b"t".to_vec()]);
        assert_eq!(partition_of(&def, 4, b"c"), 0);
        assert_eq!(partition_of(&def, 4, b"d"), 1);
        assert_eq!(partition_of(&def, 4, b"z"), 3);
        let scan = Scan::range(TableId(1), b"e".to_vec(), Some(b"n".to_vec()));
        assert_eq!(partitions_of(&def, 4, &scan), [1, 2]);
    }

    #[test]
    fn an_index_without_a_shared_prefix_asks_all() {
        let def = TableDef::hash("t", 8)
            .column("a", dyno_txn_api::Kind::U64)
            .index("none", &["a"], 0)
            .and_then(|def| def.index("shared", &["a"], 8))
            .expect("columns are there");
        let scan = Scan::prefix(TableId(1), Tuple::new().u64(9).finish());
        assert_eq!(partitions_of(&def, 5, &scan.clone().index(0)).len(), 5);
        assert_eq!(partitions_of(&def, 5, &scan.index(1)).len(), 1);
    }
}
