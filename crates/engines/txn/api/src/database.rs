//! The traits of a database and its transactions.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::{Answer, Code, Error, FrontEnd, Key, Operation, Operations, Result, TableDef, TableId};

/// A timestamp: a moment in the engine's order of transactions. Engines choose its unit, and only
/// its order has a meaning.
pub type Timestamp = u64;

/// Settings of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Time for each attempt, from its beginning to the answer of its commit.
    pub deadline: Duration,
    /// Refuses writes. An engine may then read a snapshot without any bookkeeping.
    pub read_only: bool,
    /// Decides which of two conflicting transactions gives way: the one with the lower priority,
    /// and among equals the younger one.
    pub priority: u8,
    /// The most attempts of [`Transact::transact`].
    pub attempts: u32,
    /// Sends each operation in a message of its own, still in parallel, instead of all operations
    /// of a call together. It shows what messages cost. Engines that send no messages ignore it.
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

/// A running transaction. Dropping it rolls it back.
pub trait Transaction: Operations {
    /// Commits the transaction. Returns its timestamp, if the engine has timestamps. After an error
    /// with [`crate::Retry::Unknown`] the transaction may be committed.
    fn commit(self: Box<Self>) -> Result<Option<Timestamp>>;

    /// Ends the transaction without effect. If this fails, the engine ends it by itself later.
    fn rollback(self: Box<Self>) -> Result<()>;

    /// The timestamp at which the transaction reads, if the engine has timestamps.
    fn timestamp(&self) -> Option<Timestamp> {
        None
    }
}

/// A transaction in one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Operations in order. Later ones see the effects of earlier ones.
    Operations(Vec<Operation>),
    /// A call of a procedure that the engine was started with.
    Call {
        /// The name under which it is registered.
        procedure: String,
        /// Bytes that the procedure interprets.
        arguments: Vec<u8>,
        /// A key that the procedure will use. It runs where that key is stored, or anywhere if
        /// there is none.
        home: Option<Key>,
    },
}

/// The result of a [`Request`] that was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The timestamp of the transaction, if the engine has timestamps.
    pub timestamp: Option<Timestamp>,
    /// The answers of the operations in their order. Empty for a call.
    pub answers: Vec<Answer>,
    /// What the procedure returned. Empty for operations.
    pub returned: Vec<u8>,
}

/// A table of a database, with the id that the engine gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The id by which operations name it.
    pub id: TableId,
    /// Its definition, as it was created.
    pub def: TableDef,
}

/// An engine's description of itself, for records and for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The name of the engine, such as `dyno`, `etcd` or `postgres`.
    pub engine: String,
    /// The isolation that it promises, such as `strict serializable`.
    pub isolation: String,
    /// What makes a commit durable before it is answered: `fsync`, `remote-memory`, `memory`, or
    /// the engine's own words.
    pub durability: String,
    /// The number of partitions that rows are spread over.
    pub partitions: u32,
    /// Whether procedures can be called.
    pub procedures: bool,
}

/// Runs many one-shot transactions at once from one thread.
pub trait Pipeline {
    /// Sends a request, under a number that the caller chooses. If the window is full, waits for
    /// answers and keeps them for [`Pipeline::next`].
    fn submit(&mut self, ticket: u64, request: Request) -> Result<()>;

    /// Returns the next answer, in the order in which they arrive. Returns `None` if no request is
    /// in flight, or if no answer arrives within `wait`.
    fn next(&mut self, wait: Duration) -> Option<(u64, Result<Committed>)>;

    /// Requests whose answers [`Pipeline::next`] has not returned yet.
    fn outstanding(&self) -> usize;

    /// Has the wait of [`Pipeline::next`] end without an answer when this descriptor becomes
    /// readable, so that one thread can wait for its own sockets and for the engine at once. The
    /// descriptor must stay open for as long as the pipeline. It may be one of epoll.
    ///
    /// # Errors
    /// [`Code::NotSupported`] for a pipeline that cannot; then the caller has to wait in turns.
    fn wake_on(&mut self, descriptor: BorrowedFd<'_>) -> Result<()> {
        let _ = descriptor;
        let text = "this engine's pipeline does not wait for other descriptors";
        Err(Error::new(Code::NotSupported, text))
    }
}

/// An open database, which many threads can use at once.
pub trait Database: Send + Sync {
    /// Creates a table. If one with the same name and definition exists, returns that one.
    fn create_table(&self, def: &TableDef) -> Result<TableId>;

    /// All tables of the database, in no particular order.
    fn tables(&self) -> Result<Vec<Table>>;

    /// Begins an interactive transaction.
    fn begin(&self, options: &Options) -> Result<Box<dyn Transaction + '_>>;

    /// Runs a transaction in one request, without retrying it; [`Transact::transact_once`] does
    /// that.
    fn execute(&self, request: Request, options: &Options) -> Result<Committed>;

    /// The engine's description of itself.
    fn describe(&self) -> Result<Description>;

    /// Counters by name, for people to read.
    fn stats(&self) -> Result<Vec<(String, u64)>>;

    /// Looks a table up by its name.
    fn table(&self, name: &str) -> Result<Table> {
        let mut tables = self.tables()?.into_iter();
        tables
            .find(|table| table.def.name == name)
            .ok_or_else(|| Error::new(Code::NoSuchTable, format!("table `{name}` does not exist")))
    }

    /// Runs one-shot transactions from one thread with up to `window` in flight. Engines without
    /// pipelines run each one when it is submitted.
    fn pipeline(&self, window: usize, options: &Options) -> Result<Box<dyn Pipeline + '_>> {
        // One request at a time fits into any window.
        let _ = window;
        Ok(Box::new(crate::serial::Serial::new(
            self.as_database(),
            options,
        )))
    }

    /// Runs a server on a thread of the engine, until its step says that it is over, with up to
    /// `window` requests in flight. This database must be kept until then, and the requests may
    /// name only tables that exist now: the engine would have to be asked about others, and waits
    /// for the server. Returns the server where the engine has no thread for it, which then needs
    /// one of its own.
    ///
    /// # Errors
    /// If the engine cannot be reached. The server is dropped then.
    fn host(
        &self,
        front_end: Box<dyn FrontEnd>,
        window: usize,
        options: &Options,
    ) -> Result<Option<Box<dyn FrontEnd>>> {
        let _ = (window, options);
        Ok(Some(front_end))
    }

    /// The database as a trait object.
    fn as_database(&self) -> &dyn Database;
}
