//! Keys, and tuples as keys: the order of the bytes is the order of the tuples.
//!
//! | part | bytes |
//! |---|---|
//! | `u8` `u16` `u32` `u64` | big-endian |
//! | `i64` | big-endian with the sign bit turned over |
//! | `f64` | the bits, all turned over when negative, else the sign bit: IEEE 754's total order |
//! | bytes, text | each 0x00 as 0x00 0xFF, then 0x00 0x00 |
//!
//! Parts carry no type: both sides know the tuple's shape. So the first part of a tuple of `u64` is
//! its first 8 bytes, which is what [`crate::Partitioning::Hash`] counts in.

use std::fmt;

use crate::{Code, Error, Result};

/// A table's number, given by the engine when the table is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// Where a row is: its table and its bytes there. Keys are ordered by table, then by bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The table.
    pub table: TableId,
    /// At most [`crate::limits::KEY_BYTES_MAX`] bytes, in the order of the table.
    pub bytes: Vec<u8>,
}

impl Key {
    /// A key of a table.
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

/// Writes a tuple, part by part.
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
    /// The empty tuple.
    pub fn new() -> Self {
        Self::default()
    }

    /// The empty tuple, with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Goes on behind parts that are encoded already.
    pub fn after(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// One more part.
    pub fn u8(mut self, part: u8) -> Self {
        self.0.push(part);
        self
    }

    /// One more part.
    pub fn u16(mut self, part: u16) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    /// One more part.
    pub fn u32(mut self, part: u32) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    /// One more part.
    pub fn u64(mut self, part: u64) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    /// One more part.
    pub fn i64(self, part: i64) -> Self {
        self.u64(part as u64 ^ (1 << 63))
    }

    /// One more part, in IEEE 754's total order.
    pub fn f64(self, part: f64) -> Self {
        let bits = part.to_bits();
        self.u64(if bits >> 63 == 1 {
            !bits
        } else {
            bits | 1 << 63
        })
    }

    /// One more part.
    pub fn bytes(mut self, part: &[u8]) -> Self {
        for (at, run) in part.split(|byte| *byte == 0).enumerate() {
            if at > 0 {
                self.0.extend_from_slice(&[0, 0xff]);
            }
            self.0.extend_from_slice(run);
        }
        self.0.extend_from_slice(&[0, 0]);
        self
    }

    /// One more part, ordered by its UTF-8 bytes.
    pub fn text(self, part: &str) -> Self {
        self.bytes(part.as_bytes())
    }

    /// The bytes.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// The bytes as a key of a table.
    pub fn key(self, table: TableId) -> Key {
        Key::new(table, self.0)
    }
}

/// Reads a tuple, part by part.
#[derive(Debug, Clone)]
pub struct TupleReader<'a>(&'a [u8]);

impl<'a> TupleReader<'a> {
    /// Reads from the first part.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next part, or an error where the bytes end.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.take()?))
    }

    /// The next part.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    /// The next part.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    /// The next part.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// The next part.
    pub fn i64(&mut self) -> Result<i64> {
        Ok((self.u64()? ^ (1 << 63)) as i64)
    }

    /// The next part.
    pub fn f64(&mut self) -> Result<f64> {
        let bits = self.u64()?;
        Ok(f64::from_bits(if bits >> 63 == 1 {
            bits & !(1 << 63)
        } else {
            !bits
        }))
    }

    /// The next part.
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

    /// The next part.
    pub fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?).map_err(|_| damaged("text that is not UTF-8"))
    }

    /// What is left.
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

/// The first bytes after all those with this prefix, or `None` when there are none such (0xff
/// only).
///
/// ```
/// assert_eq!(dyno_txn_api::prefix_end(b"ab"), Some(b"ac".to_vec()));
/// assert_eq!(dyno_txn_api::prefix_end(&[7, 0xff]), Some(vec![8]));
/// assert_eq!(dyno_txn_api::prefix_end(&[0xff]), None);
/// ```
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let at = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=at].to_vec();
    end[at] += 1;
    Some(end)
}
