//! Keys, and tuples as keys. The order of the bytes is the order of the tuples.
//!
//! | part | bytes |
//! |---|---|
//! | `u8` `u16` `u32` `u64` | big-endian |
//! | `i64` | big-endian with the sign bit turned over |
//! | `f64` | the bits, all turned over when negative, else the sign bit: IEEE 754's total order |
//! | bytes, text | each 0x00 as 0x00 0xFF, then 0x00 0x00 |
//!
//! The bytes do not contain the types of the parts, because both sides know the shape of the tuple.
//! So the first part of a tuple of `u64` is its first 8 bytes, which is what
//! [`crate::Partitioning::Hash`] counts.

use std::fmt;

use crate::{Code, Error, Result};

/// The id of a table, which the engine gives out when the table is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// The place of a row: its table, and its bytes there. Keys are ordered by table, then by bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The table that the row is in.
    pub table: TableId,
    /// At most [`crate::limits::KEY_BYTES_MAX`] bytes, in the order of the table.
    pub bytes: Vec<u8>,
}

impl Key {
    /// The key with these bytes in a table.
    pub fn new(table: TableId, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self { table, bytes }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.table.0, self.bytes.escape_ascii())
    }
}

/// Encodes a tuple part by part.
///
/// ```
/// use dyno_txn_api::Tuple;
/// let a = Tuple::new().u64(7).text("Barbara").finish();
/// let b = Tuple::new().u64(7).text("Barbarossa").finish();
/// assert!(a < b);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tuple(Vec<u8>);

impl Tuple {
    /// A tuple without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// A tuple without parts, with room for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Continues a tuple whose first parts are encoded already.
    pub fn after(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Appends one byte as a part.
    pub fn u8(mut self, part: u8) -> Self {
        self.0.push(part);
        self
    }

    /// Appends a part of 2 bytes, big-endian.
    pub fn u16(mut self, part: u16) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    /// Appends a part of 4 bytes, big-endian.
    pub fn u32(mut self, part: u32) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    /// Appends a part of 8 bytes, big-endian.
    pub fn u64(mut self, part: u64) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    /// Appends a signed number, negative ones before positive ones.
    pub fn i64(self, part: i64) -> Self {
        // With the sign bit inverted, negative numbers sort before positive ones.
        self.u64(part as u64 ^ (1 << 63))
    }

    /// Appends a double, in IEEE 754's total order.
    pub fn f64(self, part: f64) -> Self {
        let bits = part.to_bits();
        // The bits of positive doubles are ordered like the doubles, and those of negative ones the
        // other way round.
        self.u64(if bits >> 63 == 1 {
            !bits
        } else {
            bits | 1 << 63
        })
    }

    /// Appends bytes of any length, ordered like slices.
    pub fn bytes(mut self, part: &[u8]) -> Self {
        // A zero is escaped, so that the two zeros at the end come before any continuation: a
        // prefix sorts before what it is a prefix of.
        for (at, run) in part.split(|byte| *byte == 0).enumerate() {
            if at > 0 {
                self.0.extend_from_slice(&[0, 0xff]);
            }
            self.0.extend_from_slice(run);
        }
        self.0.extend_from_slice(&[0, 0]);
        self
    }

    /// Appends text, ordered by its UTF-8 bytes.
    pub fn text(self, part: &str) -> Self {
        self.bytes(part.as_bytes())
    }

    /// The encoded bytes of all parts.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// The encoded bytes as a key of a table.
    pub fn key(self, table: TableId) -> Key {
        Key::new(table, self.0)
    }
}

/// Decodes a tuple part by part. Each call fails if the bytes end before the part does.
#[derive(Debug, Clone)]
pub struct TupleReader<'a>(&'a [u8]);

impl<'a> TupleReader<'a> {
    /// A reader at the first part.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads a part of one byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.take()?))
    }

    /// Reads a part of 2 bytes.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    /// Reads a part of 4 bytes.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    /// Reads a part of 8 bytes.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// Reads a part that [`Tuple::i64`] wrote.
    pub fn i64(&mut self) -> Result<i64> {
        Ok((self.u64()? ^ (1 << 63)) as i64)
    }

    /// Reads a part that [`Tuple::f64`] wrote.
    pub fn f64(&mut self) -> Result<f64> {
        let bits = self.u64()?;
        Ok(f64::from_bits(if bits >> 63 == 1 {
            bits & !(1 << 63)
        } else {
            !bits
        }))
    }

    /// Reads a part that [`Tuple::bytes`] wrote.
    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        let mut part = Vec::new();
        let mut at = 0;
        loop {
            match (self.0.get(at), self.0.get(at + 1)) {
                (Some(0), Some(0)) => break,
                (Some(0), Some(0xff)) => {
                    part.push(0);
                    at += 2;
                }
                // A byte always has another one after it, because the two zeros of the end are
                // still to come.
                (Some(&byte), Some(_)) if byte != 0 => {
                    part.push(byte);
                    at += 1;
                }
                _ => return Err(damaged("bytes without their end")),
            }
        }
        self.0 = &self.0[at + 2..];
        Ok(part)
    }

    /// Reads a part that [`Tuple::text`] wrote, and fails if it is not UTF-8.
    pub fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?).map_err(|_| damaged("text that is not UTF-8"))
    }

    /// The bytes of the parts that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((part, rest)) = self.0.split_first_chunk() else {
            return Err(damaged("fewer bytes than the next part takes"));
        };
        self.0 = rest;
        Ok(*part)
    }
}

fn damaged(what: &str) -> Error {
    Error::new(Code::Damaged, format!("a key's tuple: {what}"))
}

/// The first bytes after all those with this prefix, or `None` if there are none because it
/// consists of 0xff.
///
/// ```
/// assert_eq!(dyno_txn_api::prefix_end(b"ab"), Some(b"ac".to_vec()));
/// assert_eq!(dyno_txn_api::prefix_end(&[7, 0xff]), Some(vec![8]));
/// assert_eq!(dyno_txn_api::prefix_end(&[0xff]), None);
/// ```
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    // A byte of 0xff cannot be incremented, so it is dropped and the one before it is.
    let at = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=at].to_vec();
    end[at] += 1;
    Some(end)
}
