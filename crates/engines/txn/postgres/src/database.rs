//! A database behind PostgreSQL's protocol as a [`Database`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyno_postgres::{Dsn, Session as ConnectionSettings};
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

/// The isolation level of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Transactions behave as if they ran one after the other. One that would break that fails with
    /// [`Code::Conflict`].
    #[default]
    Serializable,
    /// Each statement sees what is committed. Rows that a transaction reads are locked until it
    /// ends, unless it is read-only, so that no update between its read and its write is lost. Rows
    /// that are added to a range that it read are not prevented.
    ReadCommitted,
}

impl Isolation {
    /// The name of the level in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::Serializable => "serializable",
            Isolation::ReadCommitted => "read committed",
        }
    }
}

/// Settings for the use of a database.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The isolation level of all transactions.
    pub isolation: Isolation,
    /// The most connections for transactions. One more reads definitions of tables.
    pub connections: usize,
    /// How long connecting may take.
    pub connect_wait: Duration,
    /// Procedures that run in this process.
    pub procedures: Procedures,
    /// Procedures that run in the server. They take precedence over those of the same name in
    /// `procedures`.
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

/// A database behind PostgreSQL's protocol, with a pool of connections.
pub struct Postgres(Arc<Inner>);

pub(crate) struct Inner {
    pub pool: Pool,
    pub catalogue: Catalogue,
    pub isolation: Isolation,
    pub counts: Counts,
    connections: usize,
    procedures: Procedures,
    functions: Vec<Function>,
    /// Whether the functions were created in the server by this process.
    made: Mutex<bool>,
}

/// Counters since the database was opened.
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
    /// Uses the database of a connection string. It makes one connection, to see that the server
    /// answers.
    ///
    /// # Errors
    /// [`Code::BadArgument`] for a string that cannot be used, [`Code::Unavailable`] and
    /// [`Code::Denied`]. No message contains a password.
    pub fn open(dsn: &str, options: PostgresOptions) -> Result<Postgres> {
        let dsn = Dsn::parse(dsn).map_err(|error| crate::meaning::not_connected(&error))?;
        let mut settings = ConnectionSettings::named("dyno");
        settings.connect_timeout = Some(options.connect_wait);
        settings.set("default_transaction_isolation", options.isolation.name());
        let pool = Pool::new(dsn, settings, options.connections);
        drop(pool.acquire(Instant::now() + options.connect_wait)?);
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
        let mut lease = self.pool.acquire(until)?;
        self.counts.statements(1);
        // The statement commits by itself, so a lost answer leaves the outcome unknown.
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
        // The lock is held while the functions are created, so that a second caller does not call
        // one that does not exist yet.
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
        timestamp: None,
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
        // More threads than connections would only wait for each other.
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
