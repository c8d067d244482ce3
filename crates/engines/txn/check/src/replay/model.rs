//! The rows as a serial database would hold them: settled versions, and above them those that may
//! exist.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeBounds;

use crate::history::{Key, Value, shown};

/// What a transaction wrote, as far as its client knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// This value, or nothing.
    Is(Option<Value>),
    /// A list with this element at its end.
    EndsWith(u64),
    /// A register that carries this transaction's id.
    By(u64),
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(value) => f.write_str(&shown(value.as_ref())),
            Self::EndsWith(element) => write!(f, "a list that ends with {element}"),
            Self::By(_) => f.write_str("a register"),
        }
    }
}

impl Written {
    /// Whether a reader that was given `seen` may have seen this.
    pub fn fits(&self, seen: Option<&Value>) -> bool {
        match self {
            Self::Is(value) => value.as_ref() == seen,
            Self::EndsWith(element) => {
                matches!(seen, Some(Value::List(list)) if list.last() == Some(element))
            }
            Self::By(id) => matches!(seen, Some(Value::Register { by, .. }) if by == id),
        }
    }
}

/// A version of a row.
#[derive(Debug, Clone)]
pub(super) struct Version {
    /// Where it lies in the order.
    pub stamp: u64,
    /// Place of the transaction that wrote it.
    pub writer: usize,
    /// What it holds.
    pub written: Written,
    /// Whether its writer's outcome is unknown.
    pub maybe: bool,
}

/// What the rows hold at one moment of the replay.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Oldest first; the first version is settled, or may stand on an absent row.
    rows: BTreeMap<Key, Vec<Version>>,
}

impl Model {
    /// The versions that a reader may see now, oldest first. A row without a settled one may be
    /// absent.
    pub fn versions(&self, key: Key) -> &[Version] {
        self.rows.get(&key).map_or(&[], Vec::as_slice)
    }

    /// What the row holds, if no version of unknown outcome lies above it.
    pub fn settled(&self, key: Key) -> Option<&Written> {
        match self.versions(key) {
            [] => Some(&Written::Is(None)),
            [version] if !version.maybe => Some(&version.written),
            _ => None,
        }
    }

    /// The rows that were ever written in a range.
    pub fn keys(&self, range: impl RangeBounds<Key>) -> Vec<Key> {
        self.rows.range(range).map(|row| *row.0).collect()
    }

    /// Puts a version on top. A settled one hides all below.
    pub fn install(&mut self, key: Key, stamp: u64, writer: usize, written: Written, maybe: bool) {
        let row = self.rows.entry(key).or_default();
        if !maybe {
            row.clear();
        }
        row.push(Version {
            stamp,
            writer,
            written,
            maybe,
        });
    }

    /// A reader saw the version at `at` of a row: nothing above it exists, nothing below it is seen
    /// again. `written` is the value that it proved to hold.
    pub fn settle(&mut self, key: Key, at: usize, written: Written) {
        if let Some(row) = self.rows.get_mut(&key) {
            let mut version = row.swap_remove(at);
            version.maybe = false;
            version.written = written;
            *row = vec![version];
        }
    }

    /// A reader saw the absence below all versions of a row.
    pub fn forget(&mut self, key: Key) {
        if let Some(row) = self.rows.get_mut(&key) {
            row.clear();
        }
    }
}

/// What a transaction has written itself so far, and read since.
#[derive(Debug, Default)]
pub(super) struct Overlay(BTreeMap<Key, Written>);

impl Overlay {
    pub fn get(&self, key: Key) -> Option<&Written> {
        self.0.get(&key)
    }

    pub fn put(&mut self, key: Key, written: Written) {
        self.0.insert(key, written);
    }

    pub fn keys(&self, range: impl RangeBounds<Key>) -> impl Iterator<Item = Key> {
        self.0.range(range).map(|row| *row.0)
    }

    pub fn writes(self) -> impl Iterator<Item = (Key, Written)> {
        self.0.into_iter()
    }
}
