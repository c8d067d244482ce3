//! Terminals that send their transactions to the engine operation by operation.

use std::thread;
use std::time::{Duration, Instant};

use dyno_txn_api::{Result, Transact};

use super::pace::Pace;
use super::{Done, Ended, Recorder, Worker, ended_by};
use crate::input::Input;
use crate::transactions;

/// The longest sleep until a paced terminal is due, so that a stop request is noticed.
const NAP: Duration = Duration::from_millis(50);

pub(super) fn run(mut worker: Worker<'_>, recorder: &mut dyn Recorder) -> Result<()> {
    let plan = worker.plan;
    let mut terminals = std::mem::take(&mut worker.terminals);
    let mut entered = vec![0; terminals.len()];
    let mut pace = Pace::new(plan.paced, &mut terminals, Instant::now(), plan.now_ms());
    while let Some(due) = pace.next_due() {
        let now = Instant::now();
        let Some((at, began, input)) = pace.enter(now) else {
            if worker.over(0) {
                return Ok(());
            }
            // `enter` found nothing due at `now`, so `due` is later and the difference is not
            // negative.
            thread::sleep((due - now).min(NAP));
            continue;
        };
        // The terminal is not scheduled again, so it stops. The loop ends when none is left.
        if worker.over(entered[at]) {
            continue;
        }
        entered[at] += 1;
        let (outcome, attempts) = once(&worker, &input)?;
        let kind = input.kind();
        let ended = Instant::now();
        recorder.done(Done {
            kind,
            began,
            ended,
            outcome,
            attempts,
        });
        pace.begin(at, &mut terminals[at], Some(kind), ended, plan.now_ms());
    }
    Ok(())
}

fn once(worker: &Worker<'_>, input: &Input) -> Result<(Ended, u32)> {
    let mut attempts = 0;
    let outcome = worker.db.transact_with(&worker.plan.options(), |t| {
        // Counted here as well, because an error does not say how many attempts there were.
        attempts += 1;
        transactions::run(t, worker.tables, input)
    });
    match outcome {
        Ok(outcome) => Ok((Ended::Committed, outcome.attempts)),
        Err(error) => Ok((ended_by(error)?, attempts)),
    }
}
