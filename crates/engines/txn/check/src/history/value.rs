//! Keys and values of a history.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The most elements of a list that sentences show. They are the last ones.
const SHOWN_MAX: usize = 8;

/// A row: its table and its number. The text form is `table/number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key {
    /// The number of the table in the history.
    pub table: u32,
    /// The row's number in the table, which is also its place in a scan.
    pub id: u64,
}

impl Key {
    /// The row `id` of `table`.
    pub const fn new(table: u32, id: u64) -> Self {
        Self { table, id }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.table, self.id)
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parsed = parts.and_then(|(table, id)| Some((table.parse().ok()?, id.parse().ok()?)));
        match parsed {
            Some((table, id)) => Ok(Self { table, id }),
            None => Err(format!("key {text:?}: write TABLE/NUMBER")),
        }
    }
}

impl TryFrom<String> for Key {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.to_string()
    }
}

/// The value of a row. Registers carry the id of their writer and list elements are unique, so a
/// reader of a value knows which transaction wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number, and the transaction that wrote it.
    Register {
        /// The number, for example a balance.
        n: i64,
        /// The id of the transaction that wrote it.
        by: u64,
    },
    /// Elements in the order in which they were appended.
    List(Vec<u64>),
    /// A description of bytes that no transaction of this history can have written.
    Broken(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register { n, by } => write!(f, "{n} by T{by}"),
            Self::List(elements) => {
                let last = &elements[elements.len().saturating_sub(SHOWN_MAX)..];
                match elements.len() - last.len() {
                    0 => write!(f, "{last:?}"),
                    before => write!(f, "[{before} elements, then {last:?}]"),
                }
            }
            Self::Broken(what) => write!(f, "broken ({what})"),
        }
    }
}

/// A value or its absence, for sentences.
pub(crate) fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_from_text_and_bad_ones_are_named() {
        let key = Key::new(3, u64::MAX);
        assert_eq!(key.to_string().parse(), Ok(key));
        for bad in ["", "3", "3/", "/4", "3/x", "3/4/5", "-1/2"] {
            let error = bad.parse::<Key>().expect_err(bad);
            assert!(error.contains(bad), "{error}");
        }
    }
}
