//! A row: its versions, newest first, who read it last, and the one intent it may have.

use dyno_txn_api::{Stamp, TableId};

use crate::message::Head;

/// A value, or none where the row was deleted.
pub(crate) type Stored = Option<Box<[u8]>>;

/// What an undecided transaction wants to write.
#[derive(Debug)]
pub(crate) struct Intent {
    pub owner: Head,
    pub value: Stored,
    /// Work that waits for its fate, by number.
    pub waiters: Vec<u64>,
}

#[derive(Debug)]
pub(crate) struct Version {
    pub stamp: Stamp,
    pub value: Stored,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub table: TableId,
    pub hash: u32,
    pub key: Box<[u8]>,
    /// The stamp of `value`; 0 when nothing was ever committed here.
    pub stamp: Stamp,
    pub value: Stored,
    /// Versions before, oldest first.
    pub older: Vec<Version>,
    /// The newest stamp that read here.
    pub read: Stamp,
    pub intent: Option<Box<Intent>>,
}

/// Bytes that a row takes besides its key and values, index entries included, rounded up.
pub(crate) const ROW_BYTES: u64 = 144;
/// Bytes that an older version or an intent takes besides its value.
pub(crate) const VERSION_BYTES: u64 = 48;

pub(crate) fn bytes_of(value: &Stored) -> u64 {
    value.as_ref().map_or(0, |value| value.len() as u64)
}

impl Row {
    /// The newest version at or before a stamp: when it was written, and its value.
    pub fn at(&self, stamp: Stamp) -> (Stamp, &Stored) {
        if self.stamp <= stamp {
            return (self.stamp, &self.value);
        }
        match self
            .older
            .iter()
            .rev()
            .find(|version| version.stamp <= stamp)
        {
            Some(version) => (version.stamp, &version.value),
            None => (0, &None),
        }
    }
}
