//! How keys of Redis are rows of a table.
//!
//! One key is one row, whatever its type. A command therefore reads and writes whole rows of known
//! keys, which is the path on which the engine is fast, and a hash needs no second table, no scan
//! and no count of its own. The price is that a hash is at most as large as a row may be
//! ([`VALUE_BYTES_MAX`]) and is written whole when a field changes.
//!
//! The row's key is an 8-byte hash of the client's key, big-endian, and then that key. The table is
//! spread over partitions by these 8 bytes, so its rows are in the order of their hashes in every
//! partition, and `SCAN` walks through hashes: its cursor is the hash that comes next. A cursor
//! needs no memory in the server, survives a restart, and a key that is there during the whole scan
//! is returned, whatever is written meanwhile. The hash has 62 bits because some clients read
//! cursors as signed numbers.
//!
//! The row's value, with all numbers little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0 | version of the layout, 1 |
//! | 1 | type: 0 string, 1 hash |
//! | 2..10 | version of the value, which is new with each write, for `WATCH` |
//! | 10..18 | when it expires, in milliseconds since 1970; 0 if it does not |
//! | 18.. | the string, or field after field: length (u32), name, length (u32), value |
//!
//! The expiry is in the row because it then is in the log with the value, and needs no index: a
//! read compares it with the clock, and a sweep in the background removes what nothing reads.

use dyno_random::mix;
use dyno_txn_api::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use crate::arguments::Reader;
use crate::hash::Hash;

/// The name of the table.
pub const TABLE: &str = "resp";
/// Bytes of the hash at the front of a row's key, by which rows are partitioned.
pub const HASH_BYTES: usize = 8;
/// The longest key of a client, in bytes.
pub const KEY_MAX: usize = KEY_BYTES_MAX - HASH_BYTES;
/// The largest string, or hash with its lengths.
pub const CONTENT_MAX: usize = VALUE_BYTES_MAX - HEAD_BYTES;
/// Hashes are below this.
pub const HASH_END: u64 = 1 << 62;

const LAYOUT_VERSION: u8 = 1;
const HEAD_BYTES: usize = 18;

/// What is stored under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The value, of any type that there is here.
    pub value: Value,
    /// When it expires, in milliseconds since 1970, if it does.
    pub expires_at: Option<u64>,
    /// A number that no other write of this key has; never 0.
    pub version: u64,
}

/// A value, of one of the types that there are here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Bytes of any kind, which may be the digits of an integer.
    Text(Vec<u8>),
    /// Fields with a value each, at least one of them.
    Hash(Hash),
}

impl Value {
    /// The bytes of it that are stored.
    pub fn content(&self) -> &[u8] {
        match self {
            Value::Text(text) => text,
            Value::Hash(hash) => hash.bytes(),
        }
    }

    /// The type, as `TYPE` names it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Text(_) => "string",
            Value::Hash(_) => "hash",
        }
    }
}

/// The hash of a client's key. It is part of what is stored, so it must never change.
pub fn hash_of(key: &[u8]) -> u64 {
    // FNV-1a reads the key, and the mix spreads it: partitions and scans look at high bits.
    let fnv = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    mix(fnv) >> 2
}

/// The row's key of a client's key.
pub fn row_key(key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HASH_BYTES + key.len());
    bytes.extend_from_slice(&hash_of(key).to_be_bytes());
    bytes.extend_from_slice(key);
    bytes
}

/// The hash and the client's key of a row's key. `None` if it is too short to be one.
pub fn split_key(row_key: &[u8]) -> Option<(u64, &[u8])> {
    let (hash, key) = row_key.split_first_chunk()?;
    Some((u64::from_be_bytes(*hash), key))
}

impl Row {
    /// Whether the key counts as absent at this time.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at.is_some_and(|at| now_ms > at)
    }

    /// The row's value as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, content) = match &self.value {
            Value::Text(text) => (0, &text[..]),
            Value::Hash(hash) => (1, hash.bytes()),
        };
        let mut bytes = Vec::with_capacity(HEAD_BYTES + content.len());
        bytes.extend_from_slice(&[LAYOUT_VERSION, kind]);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.expires_at.unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(content);
        bytes
    }

    /// Decodes a row's value. `None` if another program has written it.
    pub fn decode(bytes: &[u8]) -> Option<Row> {
        let mut reader = Reader(bytes);
        if reader.u8()? != LAYOUT_VERSION {
            return None;
        }
        let kind = reader.u8()?;
        let version = reader.u64()?;
        let expires_at = Some(reader.u64()?).filter(|at| *at > 0);
        let value = match kind {
            0 => Value::Text(reader.0.to_vec()),
            1 => Value::Hash(Hash::from_bytes(reader.0)?),
            _ => return None,
        };
        Some(Row {
            value,
            expires_at,
            version,
        })
    }
}

/// The type and the expiry of a row without its content, for scans.
pub fn head_of(bytes: &[u8]) -> Option<(&'static str, Option<u64>)> {
    let (head, _) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let mut reader = Reader(head);
    reader.u8()?;
    let name = match reader.u8()? {
        0 => "string",
        _ => "hash",
    };
    reader.u64()?;
    Some((name, Some(reader.u64()?).filter(|at| *at > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let mut hash = Hash::default();
        hash.append(b"field", b"value");
        hash.append(b"", &[0, 255]);
        for value in [
            Value::Text(Vec::new()),
            Value::Text(b"a\0b".to_vec()),
            Value::Hash(hash),
        ] {
            for expires_at in [None, Some(7)] {
                let row = Row {
                    value: value.clone(),
                    expires_at,
                    version: 9,
                };
                let bytes = row.encode();
                assert_eq!(Row::decode(&bytes).as_ref(), Some(&row));
                assert_eq!(head_of(&bytes), Some((value.type_name(), expires_at)));
                for end in 0..HEAD_BYTES {
                    assert_eq!(Row::decode(&bytes[..end]), None);
                }
            }
        }
    }

    #[test]
    fn the_stored_form_stays_as_it_is() {
        let row = Row {
            value: Value::Text(b"v".to_vec()),
            expires_at: Some(2),
            version: 1,
        };
        let bytes = [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, b'v'];
        assert_eq!(row.encode(), bytes);
        assert_eq!(hash_of(b"key"), 1_305_953_448_385_748_895);
    }
}
