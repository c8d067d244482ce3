//! Operations as data: for batches, for one-shot lists and for the wire.

use crate::{Assignment, Code, Error, Key, Page, Result, Scan, TableId};

/// What a write does to one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Sets the value, whether or not there was a row.
    Put(Vec<u8>),
    /// Adds the row. Fails with [`Code::AlreadyExists`] if there is one.
    Insert(Vec<u8>),
    /// Removes the row, whether or not there was one.
    Delete,
    /// Changes some columns of the row. Fails with [`Code::NotFound`] if there is none.
    Update(Vec<Assignment>),
}

/// One operation of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Reads the row with this key.
    Get(Key),
    /// Writes the row with this key.
    Write(Key, Change),
    /// Reads one page of a range.
    Scan(Scan),
}

/// The answer to an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The value of a row, or `None` if there is no row.
    Value(Option<Vec<u8>>),
    /// The write has been done or, in a pipeline, accepted.
    Done,
    /// One page of a range, with a continuation if there are more.
    Page(Page),
}

impl Operation {
    /// An operation that reads a row.
    pub fn get(key: Key) -> Self {
        Operation::Get(key)
    }

    /// An operation that sets the value of a row.
    pub fn put(key: Key, value: impl Into<Vec<u8>>) -> Self {
        Operation::Write(key, Change::Put(value.into()))
    }

    /// An operation that adds a row.
    pub fn insert(key: Key, value: impl Into<Vec<u8>>) -> Self {
        Operation::Write(key, Change::Insert(value.into()))
    }

    /// An operation that changes some columns of a row.
    pub fn update(key: Key, assignments: Vec<Assignment>) -> Self {
        Operation::Write(key, Change::Update(assignments))
    }

    /// An operation that removes a row.
    pub fn delete(key: Key) -> Self {
        Operation::Write(key, Change::Delete)
    }

    /// The table that the operation reads or writes.
    pub fn table(&self) -> TableId {
        match self {
            Operation::Get(key) | Operation::Write(key, _) => key.table,
            Operation::Scan(scan) => scan.table,
        }
    }

    /// Whether the operation changes a row.
    pub fn is_write(&self) -> bool {
        matches!(self, Operation::Write(..))
    }
}

impl Answer {
    /// The value, if this is the answer to a get.
    pub fn value(self) -> Result<Option<Vec<u8>>> {
        match self {
            Answer::Value(value) => Ok(value),
            other => Err(unexpected("a value", &other)),
        }
    }

    /// The page, if this is the answer to a scan.
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
    let text = format!("the engine answered an operation with {found} instead of {wanted}");
    Error::new(Code::Damaged, text)
}
