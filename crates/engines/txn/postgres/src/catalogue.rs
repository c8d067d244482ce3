//! Tables: made once, known by name; definitions never change, so what was read is kept.

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

/// The schema that everything lies in.
pub const SCHEMA: &str = "dyno_txn";
/// Time for making or reading definitions.
const WAIT: Duration = Duration::from_secs(30);
/// How often another client may make something at the same moment before this one gives up.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// What is known of the tables, and a connection of its own: the caller may hold one of the
/// pool's.
#[derive(Default)]
pub struct Catalogue {
    known: Mutex<BTreeMap<TableId, Arc<Layout>>>,
    session: Mutex<Option<Session>>,
}

impl Catalogue {
    /// The table of a number.
    pub fn numbered(&self, pool: &Pool, id: TableId) -> Result<Arc<Layout>> {
        self.find(
            pool,
            |layout| layout.table.id == id,
            || format!("table number {} does not exist", id.0),
        )
    }

    /// The table of a name.
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
        self.all(pool)?;
        look().ok_or_else(|| Error::new(Code::NoSuchTable, missing()))
    }

    /// All tables, read anew.
    pub fn all(&self, pool: &Pool) -> Result<Vec<Table>> {
        let sql = format!("SELECT number, definition FROM {SCHEMA}.tables ORDER BY number");
        let rows = match self.with(pool, |session| query(session, &sql, Vec::new())) {
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

    /// Makes a table, or finds the one of the same definition.
    pub fn create(&self, pool: &Pool, def: &TableDef) -> Result<TableId> {
        layout::check(def)?;
        let mut last = None;
        for _ in 0..TRIES {
            match self.try_create(pool, def) {
                Ok(Some(id)) => return Ok(id),
                Ok(None) => {}
                // Two that make the same thing at once are told so in several ways.
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
            let text = format!("table `{}`: others make tables all the time", def.name);
            Error::new(Code::Conflict, text)
        }))
    }

    /// `None` when another client took the number.
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
                let text = format!("table `{}`: there is one of another definition", def.name);
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
        // Also where the definition was there: its writer may have been killed before this.
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

    /// Runs commands, one after the other.
    pub fn commands(&self, pool: &Pool, all: impl Iterator<Item = String>) -> Result<()> {
        let mut all = all;
        self.with(pool, |session| {
            all.try_for_each(|sql| command(session, &sql))
        })
    }

    fn with<T>(&self, pool: &Pool, work: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let mut held = self.session.lock();
        let session = match held.take().filter(Session::is_good) {
            Some(session) => held.insert(session),
            None => held.insert(Session::open(&pool.dsn, &pool.how)?),
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
