//! K2's transactions: a few rows written, a few read, each answer verified, on our engine and on
//! others.
//!
//! | file | what |
//! |---|---|
//! | `params` | what a request asks for |
//! | `draw` | keys, values, and whether an answer is right |
//! | `system` | the server of one invocation |
//! | `postgres` | the same by a function in PostgreSQL |
//! | `blocking`, `pipelined` | clients |
//! | `counts` | what they counted |
//! | `capacity` | the highest rate that is answered in time |

mod blocking;
mod capacity;
mod counts;
mod draw;
mod params;
mod pipelined;
mod postgres;
mod system;

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_record::Answer;
use dyno_suite::protocol::{Phase, Reply, Request};

use crate::{Params, RigError};
pub(crate) use capacity::capacity;
use counts::Counts;
use draw::Draw;
use params::K2Params;
pub(crate) use params::{Transport, size};
use system::System;
pub(in crate::txn) use system::{Process, first_line, spawn};

/// The warm-up, which is not counted, lasts this fraction (1/5) of the measured time.
const WARM_UP: u32 = 5;
/// How long it runs if only the answer is wanted.
const VERIFYING: Duration = Duration::from_millis(20);

/// Why a run failed, also for [`super::calls`].
#[derive(Debug, thiserror::Error)]
pub enum K2Error {
    /// A database of ours or etcd returned an error.
    #[error(transparent)]
    Database(#[from] dyno_txn_api::Error),
    /// A PostgreSQL server could not be made or run.
    #[error(transparent)]
    Server(#[from] crate::pubsub::FlowError),
    /// PostgreSQL returned an error, or its connection failed.
    #[error(transparent)]
    Postgres(#[from] ::postgres::Error),
    /// A latency could not be counted.
    #[error(transparent)]
    Measure(#[from] dyno_measure::MeasureError),
    /// Calls could not be made.
    #[error(transparent)]
    Net(#[from] dyno_net::NetError),
    /// A process could not be started or ended too early.
    #[error("{what}: {reason}")]
    Process {
        /// The program that was started, by name.
        what: String,
        /// How it ended, or why it did not start.
        reason: String,
    },
    /// A read returned a value that no transaction can have left there.
    #[error("{0}")]
    Wrong(String),
    /// The thread of a client panicked.
    #[error("a thread of the load panicked")]
    Panicked,
}

impl From<K2Error> for RigError {
    fn from(error: K2Error) -> RigError {
        RigError::Workload(error.into())
    }
}

/// `txn-k2`: transactions of a few writes and reads for some time; `peer` is another system that
/// does the same.
pub(crate) fn k2(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let mut params = K2Params::read(params, peer)?;
    // The answer comes from transactions that run before anything is timed, so the timed part may
    // be short.
    if request.phase == Phase::Verify {
        params.duration = params.duration.min(VERIFYING);
    }
    Ok(measure(&params, request)?)
}

fn measure(params: &K2Params, request: &Request) -> Result<Reply, K2Error> {
    let system = System::start(params, &request.scratch)?;
    system.load(params)?;
    let answer = first_ones(params, &system)?;
    let run = if params.is_pipelined() {
        pipelined::run
    } else {
        blocking::run
    };
    run(params, &system, params.duration / WARM_UP, 1)?;
    // Only now: the transactions that the processor time is divided by are those that follow.
    let before = (crate::used::cpu_s(), system.cpu_s());
    let counts = run(params, &system, params.duration, 2)?.whole()?;
    let client_cpu_s = crate::used::cpu_s() - before.0;
    let server_cpu_s = system.cpu_s().zip(before.1).map(|(now, then)| now - then);
    let mut metrics = counts.metrics(params);
    let mut cpu = |name: &str, seconds: f64| {
        metrics.insert(
            name.to_owned(),
            seconds * 1e6 / counts.committed.max(1) as f64,
        );
    };
    cpu("client-cpu-us", client_cpu_s);
    if let Some(seconds) = server_cpu_s {
        cpu("server-cpu-us", seconds);
        metrics.insert("cpu".to_owned(), client_cpu_s + seconds);
        metrics.insert("time".to_owned(), counts.seconds);
    }
    if let Some(checkpoints) = system.checkpoints()? {
        metrics.insert("checkpoints".to_owned(), checkpoints as f64);
    }
    let mut reply = Reply {
        answer: Some(answer),
        metrics,
        facts: facts(params, &system, &counts),
        ..Reply::default()
    };
    counts.windows.tell(&mut reply, 1.0);
    Ok(reply)
}

/// Runs the first transactions one after the other, untimed. What they read is the same on every
/// system.
fn first_ones(params: &K2Params, system: &System) -> Result<Answer, K2Error> {
    let mut worker = system.worker(params)?;
    let mut draw = Draw::new(params, u64::MAX);
    let mut digest = 0u64;
    for _ in 0..params.verified {
        let transaction = draw.next();
        let read = loop {
            match worker.run(&transaction) {
                Ok(read) => break read,
                Err(error) if error.again => {}
                Err(error) => return Err(K2Error::Wrong(error.text)),
            }
        };
        digest = digest.wrapping_add(transaction.verify(params, &read)?);
    }
    Ok(Answer {
        count: params.verified,
        checksum: format!("{digest:016x}"),
    })
}

fn facts(params: &K2Params, system: &System, counts: &Counts) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::from([
        ("server".to_owned(), system.describe()),
        ("outstanding".to_owned(), params.outstanding().to_string()),
    ]);
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        let first = load.split(' ').next().unwrap_or_default();
        facts.insert("load".to_owned(), first.to_owned());
    }
    if let Some(rate) = params.rate {
        facts.insert("rate".to_owned(), counts.rate_kept(rate));
        facts.insert("generator".to_owned(), counts.generator_kept());
    }
    facts
}
