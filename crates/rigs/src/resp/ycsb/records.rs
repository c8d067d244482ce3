//! The records of YCSB: their names, and values that say who wrote them.

use dyno_random::mix;
use dyno_redis::Value;

use crate::resp::RespError;

/// Fields of a record, and bytes of each of them, as YCSB has them if it is not told otherwise.
pub const FIELDS: usize = 10;
pub const VALUE_BYTES: usize = 100;
const NAMES: [&str; FIELDS] = [
    "field0", "field1", "field2", "field3", "field4", "field5", "field6", "field7", "field8",
    "field9",
];
/// The writer of the values that are there before anything is measured.
pub const LOADER: u64 = 0;

/// Which of all writes a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Version {
    /// The number of the write, which no other write of the run has.
    pub writer: u64,
    /// How often this field was read, modified and written back, this write included.
    pub modified: u64,
}

/// YCSB's hash of a number, by which it orders keys and scrambles ranks: FNV-1a over eight bytes,
/// without its sign.
pub fn fnv(mut number: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for _ in 0..8 {
        hash = (hash ^ (number & 0xff)).wrapping_mul(1_099_511_628_211);
        number >>= 8;
    }
    (hash as i64).unsigned_abs()
}

/// The key of a record.
pub fn key(record: u64) -> String {
    format!("user{}", fnv(record))
}

/// The command that writes some fields of a record, each with the same version.
pub fn write(record: u64, fields: std::ops::Range<usize>, version: Version) -> Vec<Vec<u8>> {
    let mut words = vec![b"HMSET".to_vec(), key(record).into_bytes()];
    for field in fields {
        words.push(NAMES[field].as_bytes().to_vec());
        words.push(value(record, field, version).to_vec());
    }
    words
}

/// The value of a field: who wrote it, and a pattern over all of that, so that no other bytes pass.
fn value(record: u64, field: usize, version: Version) -> [u8; VALUE_BYTES] {
    let mark =
        mix((record * FIELDS as u64 + field as u64) ^ mix(version.writer ^ mix(version.modified)));
    let mut bytes = [mark as u8; VALUE_BYTES];
    bytes[..8].copy_from_slice(&version.writer.to_le_bytes());
    bytes[8..16].copy_from_slice(&version.modified.to_le_bytes());
    bytes[VALUE_BYTES - 8..].copy_from_slice(&mark.to_le_bytes());
    bytes
}

/// The versions of the fields of a record that a reply to `HGETALL` has. It must have every field
/// once, each with a value that some write can have left there.
pub fn read(record: u64, reply: &Value) -> Result<[Version; FIELDS], RespError> {
    let wrong = |what: &str| RespError::Wrong(format!("record {record}: {what}"));
    let Value::Array(words) = reply else {
        return Err(wrong("the reply is not a list"));
    };
    let mut found = [None; FIELDS];
    for pair in words.chunks(2) {
        let [Value::Bulk(name), Value::Bulk(bytes)] = pair else {
            return Err(wrong("the reply is not a list of strings in pairs"));
        };
        let field = NAMES.iter().position(|known| known.as_bytes() == name);
        let field = field.ok_or_else(|| wrong("it has a field that was not written"))?;
        let version = version(record, field, bytes);
        let version = version.ok_or_else(|| wrong("it has a value that was not written"))?;
        if found[field].replace(version).is_some() {
            return Err(wrong("it has a field twice"));
        }
    }
    let mut versions = [Version::default(); FIELDS];
    for (version, found) in versions.iter_mut().zip(found) {
        *version = found.ok_or_else(|| wrong("it lacks a field"))?;
    }
    Ok(versions)
}

fn version(record: u64, field: usize, bytes: &[u8]) -> Option<Version> {
    let (writer, rest) = bytes.split_first_chunk()?;
    let (modified, _) = rest.split_first_chunk()?;
    let version = Version {
        writer: u64::from_le_bytes(*writer),
        modified: u64::from_le_bytes(*modified),
    };
    (bytes == value(record, field, version)).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(record: u64, version: Version) -> Vec<Value> {
        let words = write(record, 0..FIELDS, version).split_off(2);
        words.into_iter().map(Value::Bulk).collect()
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_passes() {
        let version = Version {
            writer: 3 << 40,
            modified: 7,
        };
        let fine = reply(5, version);
        assert_eq!(
            read(5, &Value::Array(fine.clone())).expect("whole"),
            [version; FIELDS]
        );
        assert!(
            read(6, &Value::Array(fine.clone())).is_err(),
            "another record"
        );
        let mut changed = [fine.clone(), fine.clone(), fine.clone(), fine.clone()];
        changed[0].truncate(18);
        changed[1].swap(1, 3);
        let again = changed[2][0].clone();
        changed[2][2] = again;
        let Value::Bulk(bytes) = &mut changed[3][9] else {
            panic!("a string");
        };
        bytes[50] ^= 1;
        for (at, words) in changed.into_iter().enumerate() {
            assert!(read(5, &Value::Array(words)).is_err(), "{at}");
        }
        assert!(read(5, &Value::Array(Vec::new())).is_err(), "it is absent");
    }

    /// Against numbers that YCSB's own `Utils.fnvhash64` gives.
    #[test]
    fn keys_are_those_of_ycsb() {
        assert_eq!(key(0), "user6284781860667377211");
        assert_eq!(key(1), "user8517097267634966620");
    }
}
