//! One line of a history.

use serde::{Deserialize, Serialize};

use super::{Key, Value};

/// Something that a client did or saw, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The transaction: one attempt, so a retry has an id of its own.
    #[serde(rename = "t")]
    pub transaction: u64,
    /// On a clock that all clients share, nanoseconds.
    #[serde(rename = "at")]
    pub at_ns: u64,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
}

/// What a client did or saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "kebab-case")]
pub enum What {
    /// The client is about to begin; written before anything is sent.
    Begin {
        /// The client, which does one transaction after the other.
        #[serde(rename = "p")]
        process: u32,
    },
    /// The transaction's stamp, as soon as the client knows it.
    Stamp {
        /// Snapshot and place in the order.
        #[serde(rename = "s")]
        stamp: u64,
    },
    /// An operation: reads once they are answered, writes before they are sent.
    #[serde(untagged)]
    Did(Op),
    /// What came of the transaction. A missing end means unknown.
    #[serde(untagged)]
    End {
        /// The outcome.
        #[serde(rename = "end")]
        outcome: Outcome,
        /// The stamp, if the answer brought it.
        #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
        stamp: Option<u64>,
    },
}

/// What came of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is committed.
    Ok,
    /// It had no effect and never will.
    Fail,
    /// The outcome is unknown; the transaction may even commit later.
    Unknown,
}

/// An operation of a transaction, with what it showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Op {
    /// A row was read.
    Read {
        /// Which.
        #[serde(rename = "k")]
        key: Key,
        /// What it held; nothing if it was absent.
        #[serde(rename = "v")]
        value: Option<Value>,
    },
    /// A row was given a value, or deleted.
    Write {
        /// Which.
        #[serde(rename = "k")]
        key: Key,
        /// Its new value; nothing means deleted.
        #[serde(rename = "v")]
        value: Option<Value>,
    },
    /// An element was put at the end of a list.
    Append {
        /// The list.
        #[serde(rename = "k")]
        key: Key,
        /// The element, unique in the history.
        #[serde(rename = "x")]
        element: u64,
    },
    /// A procedure on the server may have written a register; the client was not told which number.
    /// What it wrote carries the transaction's id.
    Change {
        /// Which.
        #[serde(rename = "k")]
        key: Key,
    },
    /// All rows of a range were read, or the first of them.
    Scan(Scan),
    /// All registers of a table with numbers in a range were looked up through a secondary index.
    Lookup(Lookup),
}

impl Op {
    /// The row that the operation wrote, or may have.
    pub fn written(&self) -> Option<Key> {
        match self {
            Self::Write { key, .. } | Self::Append { key, .. } | Self::Change { key } => Some(*key),
            Self::Read { .. } | Self::Scan(_) | Self::Lookup(_) => None,
        }
    }

    /// The rows that the operation showed. What a scan did not show is not among them, nor are
    /// lists of keys that was never written.
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
    /// The table.
    pub table: u32,
    /// The first number.
    pub from: u64,
    /// Behind the last number.
    pub to: u64,
    /// Whether it went from the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverse: bool,
    /// Rows at most; fewer rows mean that there were no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// What it found, in its order.
    pub rows: Vec<(u64, Value)>,
}

impl Scan {
    /// The numbers whose rows it would have shown had they been there: a scan that reached its
    /// limit says nothing about what lies behind its last row.
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

/// A scan of registers by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// The table.
    pub table: u32,
    /// The first number.
    pub from: i64,
    /// Behind the last number.
    pub to: i64,
    /// What it found, by number and then by key.
    pub rows: Vec<(u64, Value)>,
}
