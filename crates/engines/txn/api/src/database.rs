//! A database and its transactions.

use std::time::Duration;

use crate::{Answer, Code, Error, Key, Operation, Operations, Result, TableDef, TableId};

/// A moment in the engine's order of transactions.
pub type Stamp = u64;

/// How a transaction is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Time for each attempt, from begin to the answer of its commit.
    pub deadline: Duration,
    /// Refuses writes; engines may read a snapshot without keeping anything.
    pub read_only: bool,
    /// Who gives way when two collide: the smaller one. Among equals the younger.
    pub priority: u8,
    /// How often [`Transact::transact`] tries at most.
    pub attempts: u32,
    /// Sends each operation in a message of its own, still in parallel, instead of those of one
    /// call together: to see what messages cost. Engines that send none ignore it.
    pub separate: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            read_only: false,
            priority: 128,
            attempts: 20,
            separate: false,
        }
    }
}

/// A transaction under way. Dropping it rolls it back.
pub trait Transaction: Operations {
    /// Commits; the moment at which it happened, where the engine has such moments. With
    /// [`crate::Retry::Unknown`] it may have been done.
    fn commit(self: Box<Self>) -> Result<Option<Stamp>>;

    /// Gives it up.
    fn rollback(self: Box<Self>) -> Result<()>;

    /// The moment that it reads at, where the engine has such moments.
    fn stamp(&self) -> Option<Stamp> {
        None
    }
}

/// A transaction in one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Operations in their order: later ones see earlier ones.
    Operations(Vec<Operation>),
    /// A procedure of the engine.
    Call {
        /// Its name.
        procedure: String,
        /// What it is called with.
        arguments: Vec<u8>,
        /// A key that it will use: it runs where that is. Anywhere when none.
        home: Option<Key>,
    },
}

/// What came of a [`Request`] that was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The moment at which it happened, where the engine has such moments.
    pub stamp: Option<Stamp>,
    /// Answers of the operations in their order; none for a call.
    pub answers: Vec<Answer>,
    /// What the procedure returned; empty for operations.
    pub returned: Vec<u8>,
}

/// A table that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its number.
    pub id: TableId,
    /// What it is.
    pub def: TableDef,
}

/// What an engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name, such as `dyno`, `etcd`, `postgres`.
    pub engine: String,
    /// What it promises, such as `strict serializable`.
    pub isolation: String,
    /// When an answer is given: `fsync`, `remote-memory`, `memory`, or the engine's own words.
    pub durability: String,
    /// How many partitions rows lie on.
    pub partitions: u32,
    /// Whether procedures can be called.
    pub procedures: bool,
}

/// Many one-shot transactions under way at once, from one thread.
pub trait Pipeline {
    /// Sends one, with a number of the caller's own. Waits, taking answers in, while the window is
    /// full.
    fn submit(&mut self, ticket: u64, request: Request) -> Result<()>;

    /// The next answer, in whatever order they come; `None` when nothing is under way, or came in
    /// time.
    fn next(&mut self, wait: Duration) -> Option<(u64, Result<Committed>)>;

    /// How many are under way.
    fn outstanding(&self) -> usize;
}

/// An open database. Calls may come from many threads.
pub trait Database: Send + Sync {
    /// Makes a table; when there is one of the same definition, that is it.
    fn create_table(&self, def: &TableDef) -> Result<TableId>;

    /// All tables.
    fn tables(&self) -> Result<Vec<Table>>;

    /// Begins a transaction.
    fn begin(&self, options: &Options) -> Result<Box<dyn Transaction + '_>>;

    /// Runs a transaction in one request. It is not repeated here: [`Transact::transact_once`]
    /// does.
    fn execute(&self, request: Request, options: &Options) -> Result<Committed>;

    /// What it is.
    fn describe(&self) -> Result<Description>;

    /// Counters by name, for people.
    fn stats(&self) -> Result<Vec<(String, u64)>>;

    /// A table by its name.
    fn table(&self, name: &str) -> Result<Table> {
        let mut tables = self.tables()?.into_iter();
        tables
            .find(|table| table.def.name == name)
            .ok_or_else(|| Error::new(Code::NoSuchTable, format!("table `{name}` does not exist")))
    }

    /// One-shot transactions from one thread, so many under way. Engines without such a thing run
    /// each when it is submitted.
    fn pipeline(&self, window: usize, options: &Options) -> Result<Box<dyn Pipeline + '_>> {
        let _ = window;
        Ok(Box::new(crate::serial::Serial::new(
            self.as_database(),
            options,
        )))
    }

    /// Itself, as an object.
    fn as_database(&self) -> &dyn Database;
}
