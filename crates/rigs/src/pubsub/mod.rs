//! The log's workloads: messages from writers to groups of readers, by the original's protocol, by
//! ours, and by the steps between, on a private server that each invocation starts anew.

mod backlog;
mod capacity;
mod commits;
mod disk_watch;
mod flow;
mod intervals;
mod library;
mod metrics;
mod original;
mod params;
mod payload;
mod queue;
mod readers;
mod server;
mod shared;
mod way;
mod window;

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_record::Answer;
use dyno_suite::protocol::{Phase, Reply, Request};

use crate::peers::unknown;
use crate::quantiles::QUANTILES;
use crate::{Params, RigError, Windows};
use params::{FlowParams, Measured, read_load};

pub(crate) use capacity::capacity;
pub(crate) use commits::{commits, pgbench_missing};
pub(crate) use server::{Server, connect, process_cpu_s};

/// Why a flow could not be run, or gave a wrong result.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The server rejected a statement, or the connection failed.
    #[error(transparent)]
    Postgres(#[from] postgres::Error),
    /// The log's library returned an error.
    #[error(transparent)]
    Log(#[from] dyno_pubsub::Error),
    /// The server could not be made or run.
    #[error(transparent)]
    Server(#[from] dyno_postgres::PgError),
    /// A latency could not be counted.
    #[error(transparent)]
    Measure(#[from] dyno_measure::MeasureError),
    /// The error of another thread, as text.
    #[error("{0}")]
    Way(String),
    /// Messages were lost, repeated, reordered or changed.
    #[error("{0}")]
    Wrong(String),
    /// Nothing was read for half a minute although messages were missing.
    #[error("readers stopped at {read} of {wanted} messages")]
    Stalled {
        /// Messages read by all groups.
        read: u64,
        /// Messages that all groups should read.
        wanted: u64,
    },
    /// A writer's or reader's thread panicked.
    #[error("a thread of the load panicked")]
    Panicked,
}

impl From<FlowError> for RigError {
    fn from(error: FlowError) -> RigError {
        RigError::Workload(error.into())
    }
}

/// `pubsub-flow`: `messages`, or as many as go through in `seconds`, of `payload` bytes from
/// `writers` to `groups` of `readers`, in the `way` asked for, on `nodes` servers; `peer` is the
/// name of the peer whose protocol is spoken.
pub(crate) fn flow(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    peer.map(check_peer).transpose()?;
    let load = read_load(params)?;
    reply(&FlowParams::log(params, load, peer.is_some())?, request)
}

/// `pubsub-queue`: `messages` of `payload` bytes from `writers` to `readers`, each message to one
/// of them.
pub(crate) fn queue(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    peer.map(check_peer).transpose()?;
    let load = read_load(params)?;
    reply(&FlowParams::queue(params, load, peer.is_some())?, request)
}

/// How long a flow lasts if only the answer is wanted.
const VERIFYING: Duration = Duration::from_millis(500);

fn reply(params: &FlowParams, request: &Request) -> Result<Reply, RigError> {
    let params = &match request.phase {
        Phase::Verify => params.lasting(VERIFYING),
        _ => params.clone(),
    };
    let measured = params.measure(&request.scratch)?;
    let metrics = metrics::from_flow(&params.flow, &measured);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bottleneck = metrics::bottleneck(&params.flow, &measured, cores);
    let Measured { flowed, server, .. } = measured;
    let mut facts = BTreeMap::from([("server".to_string(), server)]);
    facts.extend(bottleneck.map(|text| ("bottleneck".to_string(), text)));
    if let Some(rate) = params.flow.rate {
        facts.insert("rate".to_string(), flowed.rate_kept(rate));
        facts.insert("generator".to_string(), flowed.generator_kept());
        if let Some(grew) = flowed.backlog.grew(rate) {
            let refused = QUANTILES.map(|(name, _)| format!("end-to-end-{name}"));
            facts.extend(refused.map(|name| (name, grew.clone())));
        }
    }
    let flow = &params.flow;
    let mut reply = Reply {
        answer: Some(match flow.lasts {
            None => Answer {
                count: flowed.read.messages,
                checksum: format!("{:016x}", flowed.read.digest),
            },
            // The number of messages depends on the speed. Each flow has compared what was read
            // with what was written.
            Some(_) => Answer {
                count: 1,
                checksum: "every message came to every group".to_string(),
            },
        }),
        metrics,
        facts,
        histogram: Some(flowed.write_log(&request.scratch)?),
        ..Reply::default()
    };
    Windows::from_load(&flowed.writes, flow.lasts).tell(&mut reply, flow.batch as f64);
    Ok(reply)
}

/// Accepts the one peer that speaks the original's protocol.
fn check_peer(peer: &str) -> Result<(), RigError> {
    match peer {
        "pg-msg-bench" => Ok(()),
        other => Err(unknown(other)),
    }
}

/// Why a PostgreSQL server cannot be started here; `None` if it can.
pub(crate) fn server_missing() -> Option<String> {
    let found = dyno_postgres::Installation::find(None);
    found.err().map(|error| error.to_string())
}
