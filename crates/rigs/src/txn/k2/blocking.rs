//! Clients that have one transaction in flight each, on a thread of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dyno_measure::{Call, DriveOptions, Latencies, Schedule, SystemClock, Until, drive};

use super::K2Error;
use super::counts::{Counts, TRIES_MAX};
use super::draw::Draw;
use super::params::K2Params;
use super::system::{System, Worker};
use crate::Windows;
use crate::windows::WINDOWS;

/// Runs transactions for `duration`. The warm-up and the measured time differ in `phase`, so that
/// they do not draw the same transactions.
pub(super) fn run(
    params: &K2Params,
    system: &System,
    duration: Duration,
    phase: u64,
) -> Result<Counts, K2Error> {
    let threads = params.outstanding();
    let again = AtomicU64::new(0);
    let options = DriveOptions {
        schedule: match params.rate {
            None => Schedule::ClosedLoop,
            Some(rate_per_s) => Schedule::Poisson {
                rate_per_s,
                seed: params.seed,
            },
        },
        threads,
        until: Until::DurationNs(duration.as_nanos() as u64),
        interval_ns: duration.as_nanos() as u64 / u64::from(WINDOWS),
        lag_max_ns: None,
        stop: None,
    };
    let outcome = drive(&SystemClock::start(), &options, |thread| {
        let made = system.worker(params);
        let client = phase << 32 | thread as u64;
        let mut draw = Draw::new(params, client);
        let mut worker = made.map_err(|error| error.to_string());
        let again = &again;
        move |_: Call| match &mut worker {
            Ok(worker) => transact(params, &mut **worker, &mut draw, again),
            Err(text) => Err(text.clone()),
        }
    })?;
    Ok(Counts {
        windows: Windows::from_load(&outcome, Some(duration)),
        committed: outcome.done,
        again: again.into_inner(),
        failed: outcome.failed,
        first_error: outcome.first_error.clone(),
        seconds: (outcome.ended_ns - outcome.started_ns) as f64 / 1e9,
        unsent: outcome.unsent + outcome.skipped,
        lag: match params.rate {
            Some(_) => outcome.recorder.wake_lag,
            None => Latencies::new()?,
        },
        latencies: outcome.recorder.corrected,
    })
}

/// Runs one transaction until it commits or is given up.
fn transact(
    params: &K2Params,
    worker: &mut dyn Worker,
    draw: &mut Draw<'_>,
    again: &AtomicU64,
) -> Result<(), String> {
    let transaction = draw.next();
    for _ in 0..TRIES_MAX {
        match worker.run(&transaction) {
            Ok(read) => {
                let verified = transaction.verify(params, &read);
                return verified.map(drop).map_err(|error| error.to_string());
            }
            Err(failed) if failed.again => {
                again.fetch_add(1, Ordering::Relaxed);
            }
            Err(failed) => return Err(failed.text),
        }
    }
    Err(format!("it met others {TRIES_MAX} times"))
}
