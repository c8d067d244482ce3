//! Runs a plan and counts its transactions by type.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use dyno_measure::{Latencies, MeasureError};
use dyno_tpcc::drive::{self, Done, Ended, Plan, Until};
use dyno_tpcc::input::Kind;
use dyno_tpcc::schema::Tables;
use dyno_txn_api::{Database, Error};

use crate::Windows;

/// The result of a run.
#[derive(Debug)]
pub struct Measured {
    /// Seconds from the first input to the last answer.
    pub seconds: f64,
    /// Counts and latencies of each type that ran.
    pub of: BTreeMap<Kind, OfKind>,
    /// Committed transactions by the time of their answers; empty if the plan has no fixed
    /// duration.
    pub windows: Windows,
    /// The error of an engine that failed before the run was over. The counts then cover a part of
    /// the run.
    pub cut_short: Option<Error>,
}

/// The outcomes of the transactions of one type.
#[derive(Debug)]
pub struct OfKind {
    /// Transactions that the engine acknowledged as committed.
    pub committed: u64,
    /// Transactions rolled back because their input demanded it.
    pub rolled_back: u64,
    /// Transactions given up after too many conflicts.
    pub given_up: u64,
    /// Transactions whose outcome is unknown.
    pub unknown: u64,
    /// Attempts beyond the first, over all transactions.
    pub tried_again: u64,
    /// Latencies of committed transactions from input to answer, retries included.
    pub latencies: Latencies,
}

impl OfKind {
    fn new() -> Result<OfKind, MeasureError> {
        Ok(OfKind {
            committed: 0,
            rolled_back: 0,
            given_up: 0,
            unknown: 0,
            tried_again: 0,
            latencies: Latencies::new()?,
        })
    }

    fn add(&mut self, other: &OfKind) -> Result<(), MeasureError> {
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.given_up += other.given_up;
        self.unknown += other.unknown;
        self.tried_again += other.tried_again;
        self.latencies.add(&other.latencies)
    }
}

impl Measured {
    /// Committed transactions of all types per second.
    pub fn rate(&self) -> f64 {
        self.committed() as f64 / self.seconds.max(1e-9)
    }

    /// Committed transactions of all types.
    pub fn committed(&self) -> u64 {
        self.of.values().map(|kind| kind.committed).sum()
    }

    /// Attempts that ended in a conflict, as a share (0 to 1) of all attempts.
    pub fn aborted_share(&self) -> f64 {
        let again: u64 = self.of.values().map(|kind| kind.tried_again).sum();
        let given_up: u64 = self.of.values().map(|kind| kind.given_up).sum();
        let done: u64 = self
            .of
            .values()
            .map(|kind| kind.committed + kind.rolled_back)
            .sum();
        let aborted = again + given_up;
        aborted as f64 / ((done + aborted) as f64).max(1.0)
    }
}

/// What one worker has counted.
struct WorkerCounts {
    began: Instant,
    windows: Windows,
    of: BTreeMap<Kind, OfKind>,
    wrong: Option<MeasureError>,
}

impl WorkerCounts {
    fn done(&mut self, done: &Done) -> Result<(), MeasureError> {
        let of = match self.of.get_mut(&done.kind) {
            Some(of) => of,
            None => self.of.entry(done.kind).or_insert(OfKind::new()?),
        };
        of.tried_again += u64::from(done.attempts.saturating_sub(1));
        match done.outcome {
            Ended::Committed => {
                of.committed += 1;
                let took = done.ended.saturating_duration_since(done.began);
                of.latencies.record(took.as_nanos() as u64)?;
                let at = done.ended.saturating_duration_since(self.began);
                self.windows.count(at.as_nanos() as u64, 1);
            }
            Ended::RolledBack => of.rolled_back += 1,
            Ended::Conflicts => of.given_up += 1,
            Ended::Unknown => of.unknown += 1,
        }
        Ok(())
    }
}

/// Runs the plan. An engine that fails in the middle leaves [`Measured::cut_short`].
///
/// # Errors
/// When a latency cannot be counted.
pub fn measure(
    db: &dyn Database,
    tables: &Tables,
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<Measured, MeasureError> {
    let mut windows = match plan.until {
        Until::Elapsed(duration) => Windows::over(duration),
        Until::Transactions(_) => Windows::default(),
    };
    let began = Instant::now();
    let mut counts: Vec<WorkerCounts> = (0..plan.workers())
        .map(|_| WorkerCounts {
            began,
            windows: windows.clone(),
            of: BTreeMap::new(),
            wrong: None,
        })
        .collect();
    let ran = {
        let mut recorders: Vec<_> = counts
            .iter_mut()
            .map(|counts| {
                |done: Done| {
                    if let Err(error) = counts.done(&done) {
                        counts.wrong.get_or_insert(error);
                    }
                }
            })
            .collect();
        drive::run(db, tables, plan, stop, &mut recorders)
    };
    let seconds = began.elapsed().as_secs_f64();
    let mut of: BTreeMap<Kind, OfKind> = BTreeMap::new();
    for worker in counts {
        if let Some(error) = worker.wrong {
            return Err(error);
        }
        windows.add(&worker.windows);
        for (kind, counted) in worker.of {
            match of.get_mut(&kind) {
                Some(all) => all.add(&counted)?,
                None => drop(of.insert(kind, counted)),
            }
        }
    }
    Ok(Measured {
        seconds,
        of,
        windows,
        cut_short: ran.err(),
    })
}
