//! What a transaction does, as data: for batches, for one-shot lists and for the wire.

use crate::{Assignment, Code, Error, Key, Page, Result, Scan, TableId};

/// What happens to one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The value, whether or not there was one.
    Put(Vec<u8>),
    /// The value where there was none; fails with [`Code::AlreadyExists`] else.
    Insert(Vec<u8>),
    /// No row any more, whether or not there was one.
    Delete,
    /// Some columns of a row that is there; fails with [`Code::NotFound`] else.
    Update(Vec<Assignment>),
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Reads a row.
    Get(Key),
    /// Writes a row.
    Write(Key, Change),
    /// Reads a range.
    Scan(Scan),
}

/// What an operation answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A row's value, or that there is none.
    Value(Option<Vec<u8>>),
    /// A write is done.
    Done,
    /// A page of a range.
    Page(Page),
}

impl Operation {
    /// Reads a row.
    pub fn get(key: Key) -> Self {
        Operation::Get(key)
    }

    /// Writes a value.
    pub fn put(key: Key, value: impl Into<Vec<u8>>) -> Self {
        Operation::Write(key, Change::Put(value.into()))
    }

    /// Writes a value where there is none.
    pub fn insert(key: Key, value: impl Into<Vec<u8>>) -> Self {
        Operation::Write(key, Change::Insert(value.into()))
    }

    /// Changes some columns.
    pub fn update(key: Key, assignments: Vec<Assignment>) -> Self {
        Operation::Write(key, Change::Update(assignments))
    }

    /// Removes a row.
    pub fn delete(key: Key) -> Self {
        Operation::Write(key, Change::Delete)
    }

    /// The table that it is about.
    pub fn table(&self) -> TableId {
        match self {
            Operation::Get(key) | Operation::Write(key, _) => key.table,
            Operation::Scan(scan) => scan.table,
        }
    }

    /// Whether it writes.
    pub fn is_write(&self) -> bool {
        matches!(self, Operation::Write(..))
    }
}

impl Answer {
    /// The value of a get.
    pub fn value(self) -> Result<Option<Vec<u8>>> {
        match self {
            Answer::Value(value) => Ok(value),
            other => Err(unexpected("a value", &other)),
        }
    }

    /// The page of a scan.
    pub fn page(self) -> Result<Page> {
        match self {
            Answer::Page(page) => Ok(page),
            other => Err(unexpected("a page", &other)),
        }
    }
}

fn unexpected(wanted: &str, found: &Answer) -> Error {
    let found = match found {
        Answer::Value(_) => "a value",
        Answer::Done => "a write's answer",
        Answer::Page(_) => "a page",
    };
    let text = format!("{wanted} expected, {found} came: answers are in the order of operations");
    Error::new(Code::Damaged, text)
}
