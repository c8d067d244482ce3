//! The rows as a serial database would have them: settled versions, and above them versions that
//! may exist.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeBounds;

use crate::history::{Key, Value, shown};

/// What a transaction wrote, as far as its client knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// Exactly this value, or the absence of the row.
    Is(Option<Value>),
    /// A list whose last element is this one.
    EndsWith(u64),
    /// A register that carries this transaction's id, with any value.
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
    /// Whether a reader that got `seen` may have seen this.
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
    /// Its timestamp, which is its place in the order.
    pub timestamp: u64,
    /// The place of the transaction that wrote it.
    pub writer: usize,
    /// The value, as far as it is known.
    pub written: Written,
    /// Whether the outcome of its writer is unknown.
    pub maybe: bool,
}

/// The rows at one moment of the replay.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// The versions of each row, oldest first. The first is settled, or may have been written to an
    /// absent row; all others may exist.
    rows: BTreeMap<Key, Vec<Version>>,
}

impl Model {
    /// The versions that a reader may see now, oldest first. A row without a settled one may be
    /// absent.
    pub fn versions(&self, key: Key) -> &[Version] {
        self.rows.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The version of the row that certainly exists, unless one of unknown outcome is above it.
    pub fn settled(&self, key: Key) -> Option<&Written> {
        match self.versions(key) {
            [] => Some(&Written::Is(None)),
            [version] if !version.maybe => Some(&version.written),
            _ => None,
        }
    }

    /// The rows of a range that were ever written.
    pub fn keys(&self, range: impl RangeBounds<Key>) -> Vec<Key> {
        self.rows.range(range).map(|row| *row.0).collect()
    }

    /// Adds the newest version of a row. A settled one hides all others.
    pub fn install(
        &mut self,
        key: Key,
        timestamp: u64,
        writer: usize,
        written: Written,
        maybe: bool,
    ) {
        let row = self.rows.entry(key).or_default();
        if !maybe {
            row.clear();
        }
        row.push(Version {
            timestamp,
            writer,
            written,
            maybe,
        });
    }

    /// Notes that a reader saw the version at `at` of a row. No version above it exists, and no
    /// version below it will be seen again. `written` is the value that the reader proved.
    pub fn settle(&mut self, key: Key, at: usize, written: Written) {
        if let Some(row) = self.rows.get_mut(&key) {
            let mut version = row.swap_remove(at);
            version.maybe = false;
            version.written = written;
            *row = vec![version];
        }
    }

    /// Notes that a reader saw the absence of a row, so that no version exists.
    pub fn forget(&mut self, key: Key) {
        if let Some(row) = self.rows.get_mut(&key) {
            row.clear();
        }
    }
}

/// What a transaction has written itself, and what it has read since then.
#[derive(Debug, Default)]
pub(super) struct Overlay(BTreeMap<Key, Written>);

impl Overlay {
    pub fn get(&self, key: Key) -> Option<&Written> {
        self.0.get(&key)
    }

    pub fn insert(&mut self, key: Key, written: Written) {
        self.0.insert(key, written);
    }

    pub fn keys(&self, range: impl RangeBounds<Key>) -> impl Iterator<Item = Key> {
        self.0.range(range).map(|row| *row.0)
    }

    pub fn writes(self) -> impl Iterator<Item = (Key, Written)> {
        self.0.into_iter()
    }
}
