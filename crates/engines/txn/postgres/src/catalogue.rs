//! Tables, which are looked up by name. Definitions never change, so they are read once and kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_txn_api::{Code, Error, Result, Table, TableDef, TableId};
use parking_lot::{Mutex, MutexGuard};

use crate::layout::{self, Layout, column};
use crate::meaning::During;
use crate::parameter::Parameter;
use crate::pool::Pool;
use crate::session::{Call, Session};

/// The schema that contains all tables.
pub const SCHEMA: &str = "dyno_txn";
/// How long creating or reading definitions may take.
const WAIT: Duration = Duration::from_secs(30);
/// How often other clients may create something at the same moment before this one fails.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// The known tables, and a connection for reading them. It is not one of the pool's, because the
/// caller may hold the last one of those.
#[derive(Default)]
pub struct Catalogue {
    known: Mutex<BTreeMap<TableId, Arc<Layout>>>,
    session: Mutex<Option<Session>>,
}

impl Catalogue {
    /// The table with this id.
    pub fn numbered(&self, pool: &Pool, id: TableId) -> Result<Arc<Layout>> {
        self.find(
            pool,
            |layout| layout.table.id == id,
            || format!("table number {} does not exist", id.0),
        )
    }

    /// The table with this name.
    pub fn named(&self, pool: &Pool, name: &str) -> Result<Arc<Layout>> {
        self.find(
            pool,
            |layout| layout.table.def.name == name,
            || format!("table `{name}` does not exist"),
        )
    }

    fn find(
        &self,
        pool: &Pool,
        wanted: impl Fn(&Layout) -> bool,
        missing: impl Fn() -> String,
    ) -> Result<Arc<Layout>> {
        let look = || {
            let known = self.lock();
            known.values().find(|layout| wanted(layout)).cloned()
        };
        if let Some(layout) = look() {
            return Ok(layout);
        }
        // Another client may have created the table since the definitions were read.
        self.all(pool)?;
        look().ok_or_else(|| Error::new(Code::NoSuchTable, missing()))
    }

    /// Reads the definitions of all tables from the server.
    pub fn all(&self, pool: &Pool) -> Result<Vec<Table>> {
        let sql = format!("SELECT number, definition FROM {SCHEMA}.tables ORDER BY number");
        let rows = match self.with(pool, |session| query(session, &sql, Vec::new())) {
            // Without the table of definitions no table was ever created.
            Err(error) if error.kind() == Code::NoSuchTable => return Ok(Vec::new()),
            rows => rows?,
        };
        let mut tables = Vec::new();
        for row in &rows {
            let (number, def): (i64, Vec<u8>) = (column(row, 0)?, column(row, 1)?);
            let damaged = |_| Error::new(Code::Damaged, "a table's number is out of range");
            tables.push(Table {
                id: TableId(u32::try_from(number).map_err(damaged)?),
                def: TableDef::from_bytes(&def)?,
            });
        }
        let mut known = self.lock();
        for table in &tables {
            known
                .entry(table.id)
                .or_insert_with(|| Arc::new(Layout::new(table.clone())));
        }
        Ok(tables)
    }

    /// Creates a table, or finds the one with the same definition.
    pub fn create(&self, pool: &Pool, def: &TableDef) -> Result<TableId> {
        layout::check(def)?;
        let mut last = None;
        for _ in 0..TRIES {
            match self.try_create(pool, def) {
                Ok(Some(id)) => return Ok(id),
                Ok(None) => {}
                // The server has several errors for two clients that create the same thing at once.
                // The next attempt finds what the other one created.
                Err(error)
                    if matches!(
                        error.kind(),
                        Code::Conflict | Code::AlreadyExists | Code::BadArgument
                    ) =>
                {
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
            std::thread::sleep(PAUSE);
        }
        Err(last.unwrap_or_else(|| {
            let text = format!(
                "table `{}`: other clients created tables during all attempts",
                def.name
            );
            Error::new(Code::Conflict, text)
        }))
    }

    /// Returns `None` if another client took the id or the name first.
    fn try_create(&self, pool: &Pool, def: &TableDef) -> Result<Option<TableId>> {
        let tables = self.all(pool)?;
        if tables.is_empty() {
            self.with(pool, |session| {
                command(session, &format!("CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))?;
                let columns =
                    "number bigint PRIMARY KEY, name text NOT NULL UNIQUE, definition bytea NOT NULL";
                let sql = format!("CREATE TABLE IF NOT EXISTS {SCHEMA}.tables ({columns})");
                command(session, &sql)
            })?;
        }
        let id = match tables.iter().find(|table| table.def.name == def.name) {
            Some(table) if table.def == *def => table.id,
            Some(_) => {
                let text = format!("table `{}` exists with another definition", def.name);
                return Err(Error::new(Code::TableExists, text));
            }
            None => {
                let id = tables.iter().map(|table| table.id.0).max().unwrap_or(0) + 1;
                let sql = format!(
                    "INSERT INTO {SCHEMA}.tables (number, name, definition) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING 1"
                );
                let row = vec![
                    Parameter::I64(Some(i64::from(id))),
                    Parameter::Text(Some(def.name.clone())),
                    Parameter::Bytes(Some(def.to_bytes())),
                ];
                let added = self.with(pool, |session| query(session, &sql, row))?;
                if added.is_empty() {
                    return Ok(None);
                }
                TableId(id)
            }
        };
        // This is done even if the definition existed: its writer may have been killed before it
        // created the table.
        let def = def.clone();
        let made = Layout::new(Table { id, def });
        self.with(pool, |session| {
            made.create()
                .iter()
                .try_for_each(|sql| command(session, sql))
        })?;
        self.lock().entry(id).or_insert_with(|| Arc::new(made));
        Ok(Some(id))
    }

    /// Runs commands one after the other, each in a transaction of its own.
    pub fn commands(&self, pool: &Pool, all: impl Iterator<Item = String>) -> Result<()> {
        let mut all = all;
        self.with(pool, |session| {
            all.try_for_each(|sql| command(session, &sql))
        })
    }

    fn with<T>(&self, pool: &Pool, work: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let mut held = self.session.lock();
        // A connection that has ended is replaced, so one restart of the server does not break the
        // catalogue for good.
        let session = match held.take().filter(Session::is_good) {
            Some(session) => held.insert(session),
            None => held.insert(Session::open(&pool.dsn, &pool.settings)?),
        };
        work(session)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TableId, Arc<Layout>>> {
        self.known.lock()
    }
}

fn command(session: &mut Session, sql: &str) -> Result<()> {
    session.command(sql, Instant::now() + WAIT, During::Transaction)
}

fn query(
    session: &mut Session,
    sql: &str,
    parameters: Vec<Parameter>,
) -> Result<Vec<dyno_postgres::postgres::Row>> {
    let sql = sql.into();
    let call = Call { sql, parameters };
    let until = Instant::now() + WAIT;
    let mut rows = session.send(None, &[call], until, During::Transaction)?;
    Ok(rows.pop().unwrap_or_default())
}
