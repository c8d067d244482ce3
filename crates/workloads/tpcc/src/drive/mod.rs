//! Running transactions for a while, by terminals that wait for each answer before they enter the
//! next input.
//!
//! Times are handed to a recorder of the caller's, one for each worker thread: this crate measures
//! nothing.

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

/// How a transaction goes to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a procedure, in one request.
    OneShot,
    /// Operation by operation; those that can go together, in one request.
    Batched,
    /// Operation by operation, each a request of its own; those that can go together, at the same
    /// time.
    Interactive,
}

/// What is run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How inputs are drawn.
    pub draw: Draw,
    /// How transactions go to the engine.
    pub form: Form,
    /// Terminals, so transactions under way at most.
    pub clients: u32,
    /// Threads that drive them. Only [`Form::OneShot`] can have fewer threads than terminals
    /// without pacing.
    pub threads: u32,
    /// When it ends.
    pub until: Until,
    /// Whether terminals take the time that people would for keying and thinking (clause 5.2.5.7).
    pub paced: bool,
    /// Equal seeds give equal inputs.
    pub seed: u64,
    /// Tells this run from others on the same database: rows that it adds bear it.
    pub run: u64,
    /// Tries of a transaction at most.
    pub attempts: u32,
    /// A fixed time of entry, for databases that are to be compared; the clock's when none.
    pub entered_ms: Option<i64>,
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After this time; what is under way then is waited for.
    Elapsed(Duration),
    /// After so many transactions of each terminal.
    Transactions(u64),
}

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Committed.
    Committed,
    /// Rolled back because its input said so: 1% of New Order.
    RolledBack,
    /// In the way of others as often as it may be tried.
    Conflicts,
    /// The answer of its commit was lost.
    Unknown,
}

/// A transaction that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Its type.
    pub kind: Kind,
    /// When it was entered; when it should have been, with pacing.
    pub began: Instant,
    /// When its answer came.
    pub ended: Instant,
    /// What became of it.
    pub outcome: Ended,
    /// How often it was tried.
    pub attempts: u32,
}

/// Takes what is over. Each worker thread has one of its own.
pub trait Recorder: Send {
    /// A transaction is over.
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
    /// Threads that [`run`] starts, so recorders that it wants.
    pub fn workers(&self) -> u32 {
        match (self.form, self.paced) {
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

    /// The time that an input bears.
    fn now_ms(&self) -> i64 {
        self.entered_ms.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(0, |since| since.as_millis() as i64)
        })
    }
}

/// One thread's share.
struct Worker<'a> {
    db: &'a dyn Database,
    tables: &'a Tables,
    plan: &'a Plan,
    began: Instant,
    stop: &'a AtomicBool,
    terminals: Vec<Terminal>,
}

impl Worker<'_> {
    /// Whether a terminal that has entered so many enters no more.
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
        .step_by(workers as usize)
        .map(|number| Terminal::new(plan.draw, plan.seed, plan.run, number))
        .collect()
}

/// What an engine's error means for the transaction; itself when it means that the run is over.
fn ended_by(error: Error) -> Result<Ended> {
    match (error.kind(), error.retry()) {
        (Code::UserAbort, _) => Ok(Ended::RolledBack),
        (Code::Unavailable | Code::MemoryFull, _) => Err(error),
        (_, Retry::Safe) => Ok(Ended::Conflicts),
        (_, Retry::Unknown) => Ok(Ended::Unknown),
        (_, Retry::Never) => Err(error),
    }
}
