//! One line of a history: something that a client did or saw.

use serde::{Deserialize, Serialize};

use super::{Key, Value};

/// Something that a client did or saw, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The id of the transaction. Each attempt has its own, so a retry has a new one.
    #[serde(rename = "t")]
    pub transaction: u64,
    /// Nanoseconds on a clock that all clients share.
    #[serde(rename = "at")]
    pub at_ns: u64,
    /// The kind of the event, with its fields.
    #[serde(flatten)]
    pub what: What,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "kebab-case")]
pub enum What {
    /// The client is about to begin. This is written before anything is sent.
    Begin {
        /// The client, which does one transaction after the other.
        #[serde(rename = "p")]
        process: u32,
    },
    /// The transaction's timestamp, as soon as the client knows it.
    #[serde(rename = "stamp")]
    Timestamp {
        /// The snapshot that the transaction reads, and its place in the order.
        #[serde(rename = "s")]
        timestamp: u64,
    },
    /// An operation: a read once it is answered, a write before it is sent.
    #[serde(untagged)]
    Did(Op),
    /// The end of the transaction. If it is missing, the outcome is unknown.
    #[serde(untagged)]
    End {
        /// Whether the transaction took effect.
        #[serde(rename = "end")]
        outcome: Outcome,
        /// The timestamp, if the answer contained it.
        #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
        timestamp: Option<u64>,
    },
}

/// The outcome of a transaction, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The transaction is committed.
    Ok,
    /// The transaction had no effect and never will have one.
    Fail,
    /// The outcome is unknown. The transaction may even commit later.
    Unknown,
}

/// An operation of a transaction, with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Op {
    /// A row was read by its key.
    Read {
        /// The row that was read.
        #[serde(rename = "k")]
        key: Key,
        /// The value of the row, or `None` if it was absent.
        #[serde(rename = "v")]
        value: Option<Value>,
    },
    /// A row was set to a value, or deleted.
    Write {
        /// The row that was written.
        #[serde(rename = "k")]
        key: Key,
        /// The new value, or `None` if the row was deleted.
        #[serde(rename = "v")]
        value: Option<Value>,
    },
    /// An element was appended to a list.
    Append {
        /// The row that holds the list.
        #[serde(rename = "k")]
        key: Key,
        /// The element, which is unique in the history.
        #[serde(rename = "x")]
        element: u64,
    },
    /// A procedure on the server may have written a register, and the client was not told the
    /// value. What it wrote carries the transaction's id.
    Change {
        /// The row that may have been written.
        #[serde(rename = "k")]
        key: Key,
    },
    /// All rows of a range were read, or the first of them.
    Scan(Scan),
    /// All registers of a table with values in a range were looked up through a secondary index.
    Lookup(Lookup),
}

impl Op {
    /// The row that the operation wrote or may have written.
    pub fn written(&self) -> Option<Key> {
        match self {
            Self::Write { key, .. } | Self::Append { key, .. } | Self::Change { key } => Some(*key),
            Self::Read { .. } | Self::Scan(_) | Self::Lookup(_) => None,
        }
    }

    /// The rows that the operation returned. Rows that a scan did not return are not among them,
    /// and neither are keys that were never written.
    pub fn rows(&self) -> impl Iterator<Item = (Key, Option<&Value>)> {
        let (one, table, many) = match self {
            Self::Read { key, value } => (Some((*key, value.as_ref())), 0, &[][..]),
            Self::Scan(scan) => (None, scan.table, &scan.rows[..]),
            Self::Lookup(lookup) => (None, lookup.table, &lookup.rows[..]),
            Self::Write { .. } | Self::Append { .. } | Self::Change { .. } => (None, 0, &[][..]),
        };
        let row = move |row: &'_ (u64, Value)| Key::new(table, row.0);
        one.into_iter()
            .chain(many.iter().map(move |r| (row(r), Some(&r.1))))
    }
}

/// A scan of rows by their keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    /// The number of the table in the history.
    pub table: u32,
    /// The number of the first row.
    pub from: u64,
    /// The number after that of the last row.
    pub to: u64,
    /// Whether the scan began at the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverse: bool,
    /// The most rows to return. Fewer rows mean that there were no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The rows that were found, in the order of the scan.
    pub rows: Vec<(u64, Value)>,
}

impl Scan {
    /// The range of rows that the scan would have returned if they had existed. A scan that reached
    /// its limit says nothing about what is behind its last row.
    pub fn covered(&self) -> std::ops::Range<u64> {
        let full = self.limit.is_some_and(|limit| self.rows.len() >= limit);
        match self.rows.last() {
            Some(&(last, _)) if full && self.reverse => last..self.to.max(last),
            Some(&(last, _)) if full => self.from.min(last)..last.saturating_add(1),
            None if full => self.from..self.from,
            _ => self.from..self.to.max(self.from),
        }
    }
}

/// A scan of registers by their values, through the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// The number of the table in the history.
    pub table: u32,
    /// The lowest value.
    pub from: i64,
    /// The value after the highest one.
    pub to: i64,
    /// The rows that were found, ordered by value and then by key.
    pub rows: Vec<(u64, Value)>,
}
