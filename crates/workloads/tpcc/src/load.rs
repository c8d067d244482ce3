//! Fills a database in parts, with several loaders, and records in a row what it was filled with.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use dyno_txn_api::{
    Code, Committed, Database, Error, Key, Operation, Options, Pipeline, Request, Result, Retry,
    Row, Scan, Transact, ValueRef, encode_row,
};

use crate::population::Population;
use crate::scale::Scale;
use crate::schema::{Layout, Stored, Tables, ytd};
use crate::transactions::all;

/// The most rows in one request, which is below every engine's limit.
const ROWS_MAX: usize = 100;
/// The most bytes in one request, give or take a row.
const BYTES_MAX: usize = 64 << 10;
/// Requests of each loader in flight.
const WINDOW: usize = 16;
/// How long one request may take, because an engine may pause to write a checkpoint.
const DEADLINE: Duration = Duration::from_secs(60);
/// How often a request is sent again if the engine says that this is safe.
const ATTEMPTS: u32 = 50;

/// The result of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// Rows that were written; 0 if the database had been loaded already.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// The progress of a load, for a progress bar.
#[derive(Debug, Default)]
pub struct Progress {
    /// Rows that have been written so far.
    pub rows: AtomicU64,
    /// Bytes of the keys and values written so far.
    pub bytes: AtomicU64,
    /// Set to stop the load.
    pub stop: AtomicBool,
}

/// Rows of a complete load, near enough for a progress bar.
pub fn rows_of(scale: &Scale, layout: Layout) -> u64 {
    let [warehouses, districts, customers, items] = [
        scale.warehouses,
        scale.districts,
        scale.customers,
        scale.items,
    ]
    .map(u64::from);
    let lines = match layout {
        Layout::Packed => 1,
        Layout::Rows => 10,
    };
    // Each customer has its row, its sums, a payment, an order and its lines; three in ten have a
    // waiting order.
    let of_district = customers * (4 + lines) + customers * 3 / 10 + 3;
    items + warehouses * (2 + 2 * items + districts * of_district)
}

/// Loads a database that is empty or was left by a load of the same population. Does nothing if
/// that load was complete, and refuses a database with another population. A database that has the
/// tables already keeps their layout.
pub fn load(
    db: &dyn Database,
    layout: Layout,
    population: Population,
    loaders: usize,
    progress: &Progress,
) -> Result<Loaded> {
    let tables = Tables::create(db, layout)?;
    match what_is_loaded(db, &tables)? {
        Some((there, _)) if there != population => {
            let text = format!(
                "the database holds {:?} of seed {}: use another one, or load the same",
                there.scale, there.seed
            );
            return Err(Error::new(Code::BadArgument, text));
        }
        Some((_, true)) => return Ok(Loaded { rows: 0, bytes: 0 }),
        _ => {}
    }
    // The mark comes before the first row. If the load is interrupted, a run on the partial
    // database is refused, and only the same population can be loaded again.
    mark(db, &tables, population, false)?;
    let tasks = load_tasks(&population.scale);
    // Loaders take the next part as they become free, because parts take different times.
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..loaders.max(1) {
            scope.spawn(|| {
                let mut loader = match Loader::new(db, tables, progress) {
                    Ok(loader) => loader,
                    Err(error) => return keep(&wrong, progress, error),
                };
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = loader.task(&population, *task) {
                        return keep(&wrong, progress, error);
                    }
                }
            });
        }
    });
    if let Some(error) = wrong.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    // All loaders have waited for their answers, so every row is committed by now.
    mark(db, &tables, population, true)?;
    Ok(Loaded {
        rows: progress.rows.load(Ordering::Relaxed),
        bytes: progress.bytes.load(Ordering::Relaxed),
    })
}

/// Keeps the first error and stops the other loaders.
fn keep(wrong: &Mutex<Option<Error>>, progress: &Progress, error: Error) {
    progress.stop.store(true, Ordering::Relaxed);
    let mut wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner);
    wrong.get_or_insert(error);
}

/// The population that the database was loaded with, and whether that was completed; `None` if it
/// was not loaded.
pub fn what_is_loaded(db: &dyn Database, tables: &Tables) -> Result<Option<(Population, bool)>> {
    let found = db.transact(|t| t.get(tables.loaded, b""))?;
    let Some(found) = found else {
        return Ok(None);
    };
    let row = Row::parse(&found)?;
    let number = |column| row.u64(column).map(|number| number as u32);
    let scale = Scale {
        warehouses: number(0)?,
        districts: number(1)?,
        customers: number(2)?,
        items: number(3)?,
    };
    let seed = row.u64(4)?;
    Ok(Some((Population { scale, seed }, row.u64(5)? == 1)))
}

/// The tables and the population of a database that is ready for a run. The error says what to do
/// if it is not.
pub fn ready(db: &dyn Database) -> Result<(Tables, Population)> {
    let not_loaded = |what: &str| {
        let text = format!("{what}: run `dyno tpcc load` on it first");
        Error::new(Code::NotFound, text)
    };
    let tables = Tables::find(db).map_err(|error| match error.kind() {
        Code::NoSuchTable => not_loaded("the database was not loaded"),
        _ => error,
    })?;
    match what_is_loaded(db, &tables)? {
        Some((population, true)) => Ok((tables, population)),
        Some((_, false)) => Err(not_loaded("a load of the database was broken off")),
        None => Err(not_loaded("the database was not loaded")),
    }
}

/// The sum of all payments in the database, in cents: W_YTD over all warehouses.
pub fn paid(db: &dyn Database, tables: &Tables) -> Result<u64> {
    let rows = db.transact(|t| all(t, Scan::all(tables.warehouse_ytd)))?;
    let sums = rows.iter().map(|row| Row::parse(&row.value)?.i64(ytd::YTD));
    let sum: i64 = sums.sum::<Result<i64>>()?;
    Ok(sum as u64)
}

fn mark(db: &dyn Database, tables: &Tables, population: Population, complete: bool) -> Result<()> {
    let Population { scale, seed } = population;
    let numbers = [
        u64::from(scale.warehouses),
        u64::from(scale.districts),
        u64::from(scale.customers),
        u64::from(scale.items),
        seed,
        u64::from(complete),
    ];
    let row = encode_row(&numbers.map(ValueRef::U64));
    db.transact(|t| t.put(tables.loaded, b"", &row))
}

/// A part of the population that one loader writes.
#[derive(Debug, Clone, Copy)]
enum LoadTask {
    Items,
    Warehouse(u32),
    Customers(u32, u32),
    Orders(u32, u32),
}

fn load_tasks(scale: &Scale) -> Vec<LoadTask> {
    let mut tasks = vec![LoadTask::Items];
    for warehouse in 1..=scale.warehouses {
        tasks.push(LoadTask::Warehouse(warehouse));
        for district in 1..=scale.districts {
            tasks.push(LoadTask::Customers(warehouse, district));
            tasks.push(LoadTask::Orders(warehouse, district));
        }
    }
    tasks
}

/// One thread that writes rows into the database.
struct Loader<'a> {
    tables: Tables,
    progress: &'a Progress,
    db: &'a dyn Database,
    pipeline: Box<dyn Pipeline + 'a>,
    batch: Vec<(Key, Vec<u8>)>,
    batch_bytes: usize,
    ticket: u64,
    /// Requests in flight, kept to be sent again.
    under_way: std::collections::BTreeMap<u64, Vec<Operation>>,
}

impl<'a> Loader<'a> {
    fn new(db: &'a dyn Database, tables: Tables, progress: &'a Progress) -> Result<Loader<'a>> {
        Ok(Loader {
            tables,
            progress,
            db,
            pipeline: db.pipeline(WINDOW, &options())?,
            batch: Vec::new(),
            batch_bytes: 0,
            ticket: 0,
            under_way: Default::default(),
        })
    }

    fn task(&mut self, population: &Population, task: LoadTask) -> Result<()> {
        match task {
            LoadTask::Items => {
                for item in population.items() {
                    self.add(&item)?;
                }
            }
            LoadTask::Warehouse(id) => {
                self.add(&population.warehouse(id))?;
                for district in 1..=population.scale.districts {
                    self.add(&population.district(id, district))?;
                }
                for stock in population.stock(id) {
                    self.add(&stock)?;
                }
            }
            LoadTask::Customers(warehouse, district) => {
                for (customer, history) in population.customers(warehouse, district) {
                    self.add(&customer)?;
                    self.add(&history)?;
                }
            }
            LoadTask::Orders(warehouse, district) => {
                for placed in population.orders(warehouse, district) {
                    self.add(&placed.order)?;
                    self.add(&placed.lines)?;
                    if let Some(waiting) = &placed.waiting {
                        self.add(waiting)?;
                    }
                }
            }
        }
        self.send()?;
        // A part counts as written only when all its answers are there. An error in one of them
        // ends the load.
        while !self.under_way.is_empty() {
            self.settle(DEADLINE)?;
        }
        Ok(())
    }

    fn add(&mut self, row: &dyn Stored) -> Result<()> {
        let before = self.batch.len();
        row.store(&self.tables, &mut self.batch);
        for (key, value) in &self.batch[before..] {
            self.batch_bytes += key.bytes.len() + value.len();
        }
        if self.batch.len() >= ROWS_MAX || self.batch_bytes >= BYTES_MAX {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        if self.progress.stop.load(Ordering::Relaxed) {
            return Err(Error::new(Code::Aborted, "the load was given up"));
        }
        if self.batch.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.batch);
        self.progress
            .rows
            .fetch_add(rows.len() as u64, Ordering::Relaxed);
        self.progress
            .bytes
            .fetch_add(self.batch_bytes as u64, Ordering::Relaxed);
        self.batch_bytes = 0;
        // Puts, so that an interrupted part can be written again.
        let operations: Vec<Operation> = rows
            .into_iter()
            .map(|(key, value)| Operation::put(key, value))
            .collect();
        while self.pipeline.outstanding() >= WINDOW {
            self.settle(DEADLINE)?;
        }
        self.ticket += 1;
        // The operations are kept until the answer is there, to be sent again if it is an error.
        let request = Request::Operations(operations.clone());
        self.under_way.insert(self.ticket, operations);
        self.pipeline.submit(self.ticket, request)
    }

    /// Waits for one answer. A request that failed and may be repeated is repeated at once, by
    /// itself.
    fn settle(&mut self, wait: Duration) -> Result<()> {
        let Some((ticket, answer)) = self.pipeline.next(wait) else {
            let text = format!("no answer from the engine in {} s", wait.as_secs());
            return Err(Error::new(Code::Deadline, text));
        };
        let sent = self.under_way.remove(&ticket);
        match (answer, sent) {
            (Ok(Committed { .. }), _) => Ok(()),
            // Puts of constants may be repeated whatever became of the first attempt.
            (Err(error), Some(operations)) if error.retry() != Retry::Never => self
                .db
                .transact_once(Request::Operations(operations), &options())
                .map(drop),
            (Err(error), _) => Err(error),
        }
    }
}

fn options() -> Options {
    Options {
        deadline: DEADLINE,
        attempts: ATTEMPTS,
        ..Options::default()
    }
}
