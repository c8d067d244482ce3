//! Loads of Redis' protocol against a server: ours, or Redis with one of three promises. The
//! client, its settings and its counts are the same for all.
//!
//! One client is Redis' own benchmark, which takes a number of requests and not a time. The other
//! one is ours and runs the workloads of YCSB.

mod benchmark;
mod servers;
mod ycsb;

use std::collections::BTreeMap;
use std::process::Command;

use std::time::Duration;

use dyno_record::Answer;
use dyno_redis::{Client, RedisError};
use dyno_suite::protocol::{Phase, Reply, Request};

use crate::process::ProcessError;
use crate::{Params, RigError};
use benchmark::Load;
use servers::{Kind, Served};
pub(crate) use ycsb::run as ycsb;

/// Redis that syncs its log before it answers.
pub(crate) const ALWAYS: &str = "redis-always";
/// Redis that syncs its log once a second, which is how it is mostly run.
pub(crate) const EVERY_SECOND: &str = "redis-everysec";
/// Redis without a log.
pub(crate) const NONE: &str = "redis-none";

/// Requests of a run of which only the answer is wanted.
const VERIFYING: u64 = 2_000;
/// Tests of the client that a case may name.
const TESTS: [&str; 3] = ["incr", "set", "get"];

/// How long a reply may take: a load of many keys waits for the disk of a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects to the server of a run.
fn connect(port: u16) -> Result<Client, RespError> {
    Ok(Client::connect(("127.0.0.1", port), PATIENCE)?)
}

/// Why a run of Redis' benchmark did not count.
#[derive(Debug, thiserror::Error)]
pub enum RespError {
    /// The server or the client could not be started, or ended when it should not; or a socket or
    /// a port was refused.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A server refused a command, or the connection to it broke.
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// The client printed something else than its figures.
    #[error("redis-benchmark printed no figures: {0}")]
    NotFigures(String),
    /// The server has other values than were acknowledged, or sent another reply than it should.
    #[error("{0}")]
    Wrong(String),
    /// A latency could not be counted.
    #[error(transparent)]
    Measure(#[from] dyno_measure::MeasureError),
    /// The thread of a client panicked.
    #[error("a thread of the load panicked")]
    Panicked,
}

impl From<RespError> for RigError {
    fn from(error: RespError) -> RigError {
        RigError::Workload(error.into())
    }
}

/// Why Redis or its benchmark cannot run on this machine; `None` if they can.
pub(crate) fn missing() -> Option<String> {
    ["redis-server", "redis-benchmark"]
        .into_iter()
        .find(|program| Command::new(program).arg("--version").output().is_err())
        .map(|program| format!("{program}: it is not installed (Debian: redis-server)"))
}

/// `resp-run`: `requests` of one test of `redis-benchmark`, from `clients` connections with
/// `pipeline` requests under way on each, on `keys` keys with values of `payload` bytes.
pub(crate) fn run(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let kind = Kind::from_peer(peer)?;
    let test = params.text("test")?;
    let test = TESTS.into_iter().find(|known| *known == test);
    let test = test.ok_or_else(|| params.wrong("test", format!("must be one of {TESTS:?}")))?;
    let mut load = Load {
        test,
        clients: at_least_one(params, "clients")?,
        pipeline: at_least_one(params, "pipeline")?,
        requests: at_least_one(params, "requests")?,
        keys: at_least_one(params, "keys")?,
        payload: at_least_one(params, "payload")?,
    };
    if request.phase == Phase::Verify {
        load.requests = load.requests.min(VERIFYING);
    }
    let served = Served::start(kind, &request.scratch)?;
    load.prepare(served.port())?;
    let before = served.used();
    let figures = load.run(served.port())?;
    let used = served.used().since(&before);
    let checked = load.check(served.port())?;
    let each_us = |seconds: f64| seconds * 1e6 / load.requests as f64;
    let mut metrics: BTreeMap<String, f64> = figures.into_iter().collect();
    metrics.extend([
        ("server-cpu-us".to_owned(), each_us(used.server_s)),
        ("client-cpu-us".to_owned(), each_us(used.clients_s)),
        ("cpu-us".to_owned(), each_us(used.server_s + used.clients_s)),
    ]);
    Ok(Reply {
        answer: Some(Answer {
            count: 1,
            checksum: checked.to_owned(),
        }),
        metrics,
        facts: BTreeMap::from([
            ("server".to_owned(), served.describe()),
            ("client".to_owned(), servers::version("redis-benchmark")),
        ]),
        ..Reply::default()
    })
}

fn at_least_one(params: &mut Params<'_>, name: &'static str) -> Result<u64, RigError> {
    match params.count(name)? {
        0 => Err(params.wrong(name, "is 0; at least 1 is needed".to_owned())),
        count => Ok(count),
    }
}
