//! A row, in one cache line: its key if that is short, its newest version, its last read, and where
//! its older versions and its intent are.

use dyno_txn_api::{TableId, Timestamp};

use super::order::Visibility;
use super::values::{Stored, Values};
use crate::message::Head;

/// The write of an undecided transaction.
#[derive(Debug)]
pub(crate) struct Intent {
    pub owner: Head,
    pub value: Stored,
    /// Work that waits until the transaction is decided, by number.
    pub waiters: Vec<u64>,
}

/// Marks a row without older versions, or without an intent.
pub(crate) const NOTHING: u32 = u32::MAX;
/// The table number of a free slot. No table has it.
pub(crate) const FREE: TableId = TableId(u32::MAX);

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Row {
    pub key: RowKey,
    pub table: TableId,
    pub hash: u32,
    /// The timestamp of `value`, or 0 if no version was ever committed.
    pub timestamp: Timestamp,
    pub value: Stored,
    /// The newest timestamp that has read the row.
    pub read: Timestamp,
    /// The number of the newest of the older versions, which may have been dropped since.
    pub older: u32,
    pub intent: u32,
}

/// Bytes of a row without a long key and values. Its index entry is counted with the index.
pub(crate) const ROW_BYTES: u64 = size_of::<Row>() as u64;
/// Bytes of an older version or an intent without its value, with its share of what lists them.
pub(crate) const VERSION_BYTES: u64 = 48;

impl Row {
    /// A free slot.
    pub const VACANT: Row = Row {
        key: RowKey([0; KEY]),
        table: FREE,
        hash: 0,
        timestamp: 0,
        value: Stored::NONE,
        read: 0,
        older: NOTHING,
        intent: NOTHING,
    };

    pub fn has_intent(&self) -> bool {
        self.intent != NOTHING
    }

    /// How scans must treat this row.
    pub(crate) fn visibility(&self) -> Visibility {
        match (self.has_intent() || !self.value.is_none(), self.timestamp) {
            (true, _) => Visibility::Living,
            (false, 0) => Visibility::Blank,
            (false, deleted) => Visibility::Deleted(deleted),
        }
    }
}

const KEY: usize = 24;
/// The longest key that fits into its row.
const SHORT: usize = KEY - 1;
/// The last byte of a key that is stored among the values.
const LONG: u8 = u8::MAX;

/// A key: its bytes, padded with zeros, and its length; or the location of a long key among the
/// values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(8))]
pub(crate) struct RowKey([u8; KEY]);

impl RowKey {
    /// The key if it fits into the row.
    pub fn short(key: &[u8]) -> Option<Self> {
        let mut bytes = [0; KEY];
        if key.len() > SHORT {
            return None;
        }
        match key.as_array::<8>() {
            // The usual key is one number, for which this is a single move.
            Some(number) => bytes[..8].copy_from_slice(number),
            None => bytes[..key.len()].copy_from_slice(key),
        }
        bytes[SHORT] = key.len() as u8;
        Some(Self(bytes))
    }

    pub fn new(key: &[u8], values: &mut Values) -> Self {
        Self::short(key).unwrap_or_else(|| {
            let mut bytes = [LONG; KEY];
            bytes[..8].copy_from_slice(&values.insert(key).to_bits().to_le_bytes());
            Self(bytes)
        })
    }

    fn location(&self) -> Option<Stored> {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        let long = self.0[SHORT] == LONG;
        long.then(|| Stored::from_bits(u64::from_le_bytes([a, b, c, d, e, f, g, h])))
    }

    pub fn bytes<'a>(&'a self, values: &'a Values) -> &'a [u8] {
        match self.location() {
            Some(location) => values.get(location).unwrap_or(&[]),
            None => &self.0[..usize::from(self.0[SHORT])],
        }
    }

    pub fn free(&self, values: &mut Values) {
        if let Some(location) = self.location() {
            values.free(location);
        }
    }
}
