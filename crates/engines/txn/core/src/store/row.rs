//! A row, in one cache line: its key when it is short, its newest version, who read it last, and where
//! its older versions and the one intent it may have are.

use dyno_txn_api::{Stamp, TableId};

use super::order::Visibility;
use super::values::{Stored, Values};
use crate::message::Head;

/// What an undecided transaction wants to write.
#[derive(Debug)]
pub(crate) struct Intent {
    pub owner: Head,
    pub value: Stored,
    /// Work that waits for its fate, by number.
    pub waiters: Vec<u64>,
}

/// No older version, or no intent.
pub(crate) const NOTHING: u32 = u32::MAX;
/// The table of a place without a row; no table has this number.
pub(crate) const FREE: TableId = TableId(u32::MAX);

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Row {
    pub key: RowKey,
    pub table: TableId,
    pub hash: u32,
    /// The stamp of `value`; 0 when nothing was ever committed here.
    pub stamp: Stamp,
    pub value: Stored,
    /// The newest stamp that read here.
    pub read: Stamp,
    /// The newest of the versions before.
    pub older: u32,
    pub intent: u32,
}

/// Bytes that a row takes besides a long key and values: itself, and its share of the point index, which is
/// 3/8 to 3/4 full and counted apart.
pub(crate) const ROW_BYTES: u64 = size_of::<Row>() as u64;
/// Bytes that an older version or an intent takes besides its value, with its entry among what may be
/// forgotten.
pub(crate) const VERSION_BYTES: u64 = 48;

impl Row {
    /// A place without a row.
    pub const VACANT: Row = Row {
        key: RowKey([0; KEY]),
        table: FREE,
        hash: 0,
        stamp: 0,
        value: Stored::NONE,
        read: 0,
        older: NOTHING,
        intent: NOTHING,
    };

    pub fn has_intent(&self) -> bool {
        self.intent != NOTHING
    }

    /// What a scan has to do with this row.
    pub(crate) fn visibility(&self) -> Visibility {
        match (self.has_intent() || !self.value.is_none(), self.stamp) {
            (true, _) => Visibility::Living,
            (false, 0) => Visibility::Blank,
            (false, deleted) => Visibility::Deleted(deleted),
        }
    }
}

const KEY: usize = 24;
/// Bytes of a key that fit into its row.
const SHORT: usize = KEY - 1;
/// The last byte where the key lies among the values.
const LONG: u8 = u8::MAX;

/// A key: its bytes, zeros, and their number; or where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(8))]
pub(crate) struct RowKey([u8; KEY]);

impl RowKey {
    /// A key that fits.
    pub fn short(key: &[u8]) -> Option<Self> {
        let mut bytes = [0; KEY];
        if key.len() > SHORT {
            return None;
        }
        match key.as_array::<8>() {
            // The usual key is one number.
            Some(number) => bytes[..8].copy_from_slice(number),
            None => bytes[..key.len()].copy_from_slice(key),
        }
        bytes[SHORT] = key.len() as u8;
        Some(Self(bytes))
    }

    pub fn new(key: &[u8], values: &mut Values) -> Self {
        Self::short(key).unwrap_or_else(|| {
            let mut bytes = [LONG; KEY];
            bytes[..8].copy_from_slice(&values.put(key).to_bits().to_le_bytes());
            Self(bytes)
        })
    }

    fn place(&self) -> Option<Stored> {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        let long = self.0[SHORT] == LONG;
        long.then(|| Stored::from_bits(u64::from_le_bytes([a, b, c, d, e, f, g, h])))
    }

    pub fn bytes<'a>(&'a self, values: &'a Values) -> &'a [u8] {
        match self.place() {
            Some(place) => values.get(place).unwrap_or(&[]),
            None => &self.0[..usize::from(self.0[SHORT])],
        }
    }

    pub fn free(&self, values: &mut Values) {
        if let Some(place) = self.place() {
            values.free(place);
        }
    }
}
