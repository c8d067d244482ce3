//! Runs transactions for some time, from terminals that wait for each answer before they enter the
//! next input.
//!
//! Times are passed to a recorder of the caller's, one for each worker thread, because this crate
//! measures nothing.

mod blocking;
mod pace;
mod pipelined;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyno_txn_api::{Code, Database, Error, Options, Result, Retry};

use crate::input::{Draw, Kind, Terminal};
use crate::schema::Tables;

/// How the operations of a transaction are sent to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a procedure, in one request.
    OneShot,
    /// Operation by operation; those that can be sent together are one request.
    Batched,
    /// Operation by operation, each a request of its own; those that can be sent together are in
    /// flight at the same time.
    Interactive,
}

/// The parameters of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How the inputs of terminals are drawn.
    pub draw: Draw,
    /// How transactions are sent to the engine.
    pub form: Form,
    /// Terminals, each of which has at most one transaction in flight.
    pub clients: u32,
    /// Threads that drive them. Only [`Form::OneShot`] can have fewer threads than terminals
    /// without pacing.
    pub threads: u32,
    /// When terminals stop entering inputs.
    pub until: Until,
    /// Whether terminals wait as long as people would for keying and thinking (clause 5.2.5.7).
    pub paced: bool,
    /// Equal seeds give equal inputs.
    pub seed: u64,
    /// Distinguishes this run from others on the same database, because the rows that it adds carry
    /// it.
    pub run: u64,
    /// The most attempts of one transaction.
    pub attempts: u32,
    /// A fixed entry time, for databases that are to be compared; `None` takes the clock's.
    pub entered_ms: Option<i64>,
}

/// When terminals stop entering inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After this time. Transactions in flight are waited for.
    Elapsed(Duration),
    /// After this many transactions of each terminal.
    Transactions(u64),
}

/// The outcome of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The engine acknowledged the commit.
    Committed,
    /// Rolled back because its input said so: 1% of New Order.
    RolledBack,
    /// It was given up after the last allowed attempt ended in a conflict.
    Conflicts,
    /// The answer to its commit was lost, so it may have committed.
    Unknown,
}

/// A transaction that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Which of the five types it is.
    pub kind: Kind,
    /// When it was entered; with pacing, when it should have been.
    pub began: Instant,
    /// When its last answer arrived.
    pub ended: Instant,
    /// How it ended, after all attempts.
    pub outcome: Ended,
    /// How many attempts it took.
    pub attempts: u32,
}

/// Receives transactions that have ended. Each worker thread has its own.
pub trait Recorder: Send {
    /// Called once for each transaction, on the worker's thread.
    fn done(&mut self, done: Done);
}

impl<F: FnMut(Done) + Send> Recorder for F {
    fn done(&mut self, done: Done) {
        self(done);
    }
}

/// Runs the plan. An error of the engine other than a conflict ends it; recorders keep what was
/// done until then.
pub fn run<R: Recorder>(
    db: &dyn Database,
    tables: &Tables,
    plan: &Plan,
    stop: &AtomicBool,
    recorders: &mut [R],
) -> Result<()> {
    let threads = plan.workers();
    if recorders.len() != threads as usize {
        let text = format!("{} recorders for {threads} workers", recorders.len());
        return Err(Error::new(Code::BadArgument, text));
    }
    let began = Instant::now();
    let wrong = Mutex::new(None);
    thread::scope(|scope| {
        for (number, recorder) in (0..threads).zip(recorders) {
            let worker = Worker {
                db,
                tables,
                plan,
                began,
                stop,
                terminals: terminals(plan, number, threads),
            };
            let wrong = &wrong;
            scope.spawn(move || {
                let ran = match plan.form {
                    Form::OneShot => pipelined::run(worker, recorder),
                    _ => blocking::run(worker, recorder),
                };
                if let Err(error) = ran {
                    // The other workers stop too, because a run that lost its engine is not a
                    // measurement. The first error is kept; later ones are often its consequences.
                    stop.store(true, Ordering::Relaxed);
                    let mut wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner);
                    wrong.get_or_insert(error);
                }
            });
        }
    });
    match wrong.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

impl Plan {
    /// How many threads [`run`] starts, and so how many recorders it needs.
    pub fn workers(&self) -> u32 {
        match (self.form, self.paced) {
            // A thread that waits for each answer can drive one terminal only, unless terminals
            // spend most of their time thinking.
            (Form::OneShot, _) | (_, true) => self.threads.min(self.clients),
            _ => self.clients,
        }
        .max(1)
    }

    fn options(&self) -> Options {
        Options {
            attempts: self.attempts,
            separate: self.form == Form::Interactive,
            ..Options::default()
        }
    }

    /// The entry time that an input carries.
    fn now_ms(&self) -> i64 {
        self.entered_ms.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(0, |since| since.as_millis() as i64)
        })
    }
}

/// The part of a plan that one thread runs.
struct Worker<'a> {
    db: &'a dyn Database,
    tables: &'a Tables,
    plan: &'a Plan,
    began: Instant,
    stop: &'a AtomicBool,
    terminals: Vec<Terminal>,
}

impl Worker<'_> {
    /// Whether a terminal that has entered this many inputs stops.
    fn over(&self, entered: u64) -> bool {
        self.stop.load(Ordering::Relaxed)
            || match self.plan.until {
                Until::Elapsed(time) => self.began.elapsed() >= time,
                Until::Transactions(count) => entered >= count,
            }
    }
}

fn terminals(plan: &Plan, worker: u32, workers: u32) -> Vec<Terminal> {
    (worker..plan.clients)
        // Terminals are dealt out in turn, so that each worker has terminals of many warehouses.
        .step_by(workers as usize)
        .map(|number| Terminal::new(plan.draw, plan.seed, plan.run, number))
        .collect()
}

/// The outcome that an engine's error means for the transaction. Returns the error if it ends the
/// run.
fn ended_by(error: Error) -> Result<Ended> {
    match (error.kind(), error.retry()) {
        (Code::UserAbort, _) => Ok(Ended::RolledBack),
        // Both are safe to retry, but an engine that is gone or full stays so. Counting them as
        // conflicts would make the run look like one with contention.
        (Code::Unavailable | Code::MemoryFull, _) => Err(error),
        (_, Retry::Safe) => Ok(Ended::Conflicts),
        (_, Retry::Unknown) => Ok(Ended::Unknown),
        (_, Retry::Never) => Err(error),
    }
}
