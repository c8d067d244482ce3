//! The database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyno_postgres::{Dsn, Session as How};
use dyno_txn_api::{
    Code, Committed, Database, Description, Error, Options, Pipeline, Procedures, Request, Result,
    Table, TableDef, TableId, Transaction,
};
use parking_lot::Mutex;

use crate::catalogue::Catalogue;
use crate::function::{Fields, Function};
use crate::meaning::During;
use crate::parameter::Parameter;
use crate::pipeline::Threads;
use crate::pool::Pool;
use crate::session::Call;
use crate::transaction::Running;

/// What transactions are kept apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// As if one after the other. What is in the way of others fails with [`Code::Conflict`].
    #[default]
    Serializable,
    /// Statements see what is committed. Rows that a transaction reads are locked until it ends,
    /// unless it is read only, so that none is lost between reading and writing; rows that come
    /// into a range that was read are not kept out.
    ReadCommitted,
}

impl Isolation {
    /// As SQL calls it.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::Serializable => "serializable",
            Isolation::ReadCommitted => "read committed",
        }
    }
}

/// How a database is used.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// What transactions are kept apart by.
    pub isolation: Isolation,
    /// Connections at most; one more reads definitions of tables.
    pub connections: usize,
    /// How long connecting may take.
    pub connect_wait: Duration,
    /// What can be called, in this process.
    pub procedures: Procedures,
    /// What can be called, in the server: goes before a procedure of the same name.
    pub functions: Vec<Function>,
}

impl Default for PostgresOptions {
    fn default() -> PostgresOptions {
        PostgresOptions {
            isolation: Isolation::default(),
            connections: 64,
            connect_wait: Duration::from_secs(5),
            procedures: Procedures::new(),
            functions: Vec::new(),
        }
    }
}

/// A database of PostgreSQL's wire.
pub struct Postgres(Arc<Inner>);

pub(crate) struct Inner {
    pub pool: Pool,
    pub catalogue: Catalogue,
    pub isolation: Isolation,
    pub counts: Counts,
    connections: usize,
    procedures: Procedures,
    functions: Vec<Function>,
    /// Whether the functions are in the server as this program has them.
    made: Mutex<bool>,
}

/// What happened so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub committed: AtomicU64,
    pub conflicts: AtomicU64,
    pub statements: AtomicU64,
}

impl Counts {
    pub fn statements(&self, count: usize) {
        self.statements.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Postgres {
    /// Uses the database of a connection string. One connection is made, to see that it is there.
    ///
    /// # Errors
    /// [`Code::BadArgument`] for a string of no use, [`Code::Unavailable`] and [`Code::Denied`].
    /// None holds a password.
    pub fn open(dsn: &str, options: PostgresOptions) -> Result<Postgres> {
        let dsn = Dsn::parse(dsn).map_err(|error| crate::meaning::not_connected(&error))?;
        let mut how = How::named("dyno");
        how.connect_timeout = Some(options.connect_wait);
        how.set("default_transaction_isolation", options.isolation.name());
        let pool = Pool::new(dsn, how, options.connections);
        drop(pool.take(Instant::now() + options.connect_wait)?);
        Ok(Postgres(Arc::new(Inner {
            pool,
            catalogue: Catalogue::default(),
            isolation: options.isolation,
            counts: Counts::default(),
            connections: options.connections.max(1),
            procedures: options.procedures,
            functions: options.functions,
            made: Mutex::default(),
        })))
    }
}

impl Inner {
    pub fn execute(&self, request: Request, options: &Options) -> Result<Committed> {
        let (procedure, arguments) = match request {
            Request::Operations(operations) => {
                let mut transaction = Running::begin(self, options);
                let answers = transaction.batch(&operations)?;
                transaction.finish()?;
                return Ok(committed(answers, Vec::new()));
            }
            Request::Call {
                procedure,
                arguments,
                ..
            } => (procedure, arguments),
        };
        let function = self.functions.iter().find(|f| f.procedure == procedure);
        if let Some(function) = function {
            return self.call(function, &arguments, options);
        }
        let procedure = self.procedures.get(&procedure)?;
        let mut transaction = Running::begin(self, options);
        let returned = procedure.run(&mut transaction, &arguments)?;
        transaction.finish()?;
        Ok(committed(Vec::new(), returned))
    }

    fn call(&self, function: &Function, arguments: &[u8], options: &Options) -> Result<Committed> {
        self.make_functions()?;
        let until = Instant::now() + options.deadline;
        let arguments = (function.arguments)(arguments)?.into_iter();
        let parameters: Vec<Parameter> = arguments.map(|one| one.parameter()).collect();
        let call = Call {
            sql: function.call.as_str().into(),
            parameters,
        };
        let mut lease = self.pool.take(until)?;
        self.counts.statements(1);
        let sent = lease.session()?.send(None, &[call], until, During::Commit);
        if sent.as_ref().is_err_and(|e| e.kind() == Code::Conflict) {
            self.counts.conflicts.fetch_add(1, Ordering::Relaxed);
        }
        let rows = sent?;
        let row = rows.first().and_then(|rows| rows.first()).ok_or_else(|| {
            let text = format!("function of `{}`: it returned no row", function.procedure);
            Error::new(Code::Damaged, text)
        })?;
        self.counts.committed.fetch_add(1, Ordering::Relaxed);
        Ok(committed(Vec::new(), (function.answer)(&Fields(row))?))
    }

    fn make_functions(&self) -> Result<()> {
        let mut made = self.made.lock();
        if !*made {
            let all = self.functions.iter().map(|f| f.create.clone());
            self.catalogue.commands(&self.pool, all)?;
            *made = true;
        }
        Ok(())
    }
}

fn committed(answers: Vec<dyno_txn_api::Answer>, returned: Vec<u8>) -> Committed {
    Committed {
        stamp: None,
        answers,
        returned,
    }
}

impl Database for Postgres {
    fn create_table(&self, def: &TableDef) -> Result<TableId> {
        self.0.catalogue.create(&self.0.pool, def)
    }

    fn tables(&self) -> Result<Vec<Table>> {
        self.0.catalogue.all(&self.0.pool)
    }

    fn table(&self, name: &str) -> Result<Table> {
        let layout = self.0.catalogue.named(&self.0.pool, name)?;
        Ok(layout.table.clone())
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(Running::begin(&self.0, options)))
    }

    fn execute(&self, request: Request, options: &Options) -> Result<Committed> {
        self.0.execute(request, options)
    }

    fn describe(&self) -> Result<Description> {
        let isolation = self.0.isolation;
        Ok(Description {
            engine: "postgres".to_owned(),
            isolation: match isolation {
                Isolation::Serializable => isolation.name().to_owned(),
                Isolation::ReadCommitted => format!("{}, rows read are locked", isolation.name()),
            },
            durability: "as the server's synchronous_commit says".to_owned(),
            partitions: 1,
            procedures: true,
        })
    }

    fn stats(&self) -> Result<Vec<(String, u64)>> {
        let Counts {
            committed,
            conflicts,
            statements,
        } = &self.0.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Ok(vec![
            ("committed".to_owned(), read(committed)),
            ("conflicts".to_owned(), read(conflicts)),
            ("statements".to_owned(), read(statements)),
        ])
    }

    fn pipeline(&self, window: usize, options: &Options) -> Result<Box<dyn Pipeline + '_>> {
        let threads = window.clamp(1, self.0.connections);
        Ok(Box::new(Threads::new(
            Arc::clone(&self.0),
            threads,
            window.max(1),
            options,
        )))
    }

    fn as_database(&self) -> &dyn Database {
        self
    }
}
