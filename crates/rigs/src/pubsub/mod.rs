//! The log's workloads: messages from writers to groups of readers, by the original's protocol, by ours, and by the steps
//! between, on a private server that each invocation starts anew.

mod backlog;
mod flow;
mod library;
mod original;
mod payload;
mod readers;
mod server;
mod way;
mod window;

use std::collections::BTreeMap;
use std::sync::Mutex;

use dyno_measure::Latencies;
use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};

use crate::{Params, RigError};
use flow::{Flow, Flowed};
use library::Library;
use original::{Original, Step};
use server::Server;
use way::Way;

/// Why a flow failed.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The server said no.
    #[error(transparent)]
    Postgres(#[from] postgres::Error),
    /// The log said no.
    #[error(transparent)]
    Log(#[from] dyno_pubsub::Error),
    /// A latency could not be counted.
    #[error(transparent)]
    Measure(#[from] dyno_measure::MeasureError),
    /// Another thread's error, in words.
    #[error("{0}")]
    Way(String),
    /// What came is not what was sent.
    #[error("{0}")]
    Wrong(String),
    /// Nothing came any more.
    #[error("readers stopped at {read} of {wanted} messages")]
    Stalled {
        /// Messages read by all groups.
        read: u64,
        /// Messages that all groups should read.
        wanted: u64,
    },
    /// A thread panicked.
    #[error("a thread of the load panicked")]
    Panicked,
}

/// `pubsub-flow`: `messages` of `payload` bytes from `writers` to `groups` of `readers`, in the `way` asked for; `peer` is the name
/// under which somebody else's protocol is spoken.
pub(crate) fn flow(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let flow = read_flow(params)?;
    let partitions = size(params.count("partitions")?);
    let name = params.text("way")?;
    let name = match peer {
        None => name,
        Some(peer) => peer_version(peer).map(|_| "text-array")?,
    };
    let server = Server::start(&request.scratch, &flow, partitions)?;
    let way = way(params, name, &flow, partitions, &server)?;
    way.prepare()?;
    let flowed = flow.run(&*way, || server.used(&*way))?;
    let used = server.used(&*way)?.since(&flowed.used_before);
    let mut metrics = metrics(&flow, &flowed);
    let messages = flow.messages as f64;
    metrics.insert(
        "server-cpu-us".to_string(),
        used.server_cpu_s * 1e6 / messages,
    );
    metrics.insert(
        "client-cpu-us".to_string(),
        used.client_cpu_s * 1e6 / messages,
    );
    metrics.insert("cpu-us".to_string(), used.cpu_s() * 1e6 / messages);
    metrics.insert("wal-bytes".to_string(), used.wal_bytes / messages);
    Ok(Reply {
        answer: Some(Answer {
            count: flowed.read.messages,
            checksum: format!("{:016x}", flowed.read.digest),
        }),
        metrics,
        facts: facts(&flow, &flowed, &server),
        histogram: Some(server::write_log(&request.scratch, &flowed)?),
        ..Reply::default()
    })
}

/// The way of this name.
fn way(
    params: &mut Params<'_>,
    name: &str,
    flow: &Flow,
    partitions: usize,
    server: &Server,
) -> Result<Box<dyn Way>, RigError> {
    let read_batch = size(params.count("read-batch")?);
    Ok(match name {
        "text-array" | "binary" | "lean" => {
            if flow.readers != partitions {
                let reason = format!("{name} has one reader for each of {partitions} partitions");
                return Err(params.wrong("readers", reason));
            }
            Box::new(Original {
                config: server.config(),
                step: match name {
                    "text-array" => Step::TextArray,
                    "binary" => Step::Binary,
                    _ => Step::Lean,
                },
                partitions,
                groups: flow.groups,
                read_batch,
            })
        }
        "direct" | "broker" => Box::new(Library {
            dsn: server.dsn(),
            partitions,
            readers: flow.readers,
            window: flow.window,
            broker: (name == "broker").then(|| server.broker_socket()),
            process: Mutex::new(None),
        }),
        other => {
            let reason = format!("`{other}` is none of text-array, binary, lean, direct, broker");
            return Err(params.wrong("way", reason));
        }
    })
}

/// The commit of the original whose protocol is spoken.
pub(crate) fn peer_version(peer: &str) -> Result<&'static str, RigError> {
    match peer {
        "pg-msg-bench" => Ok("8164907"),
        other => Err(RigError::Peer(other.to_string())),
    }
}

fn read_flow(params: &mut Params<'_>) -> Result<Flow, RigError> {
    let rate = params.number("rate")?;
    let flow = Flow {
        writers: size(params.count("writers")?),
        readers: size(params.count("readers")?),
        groups: size(params.count("groups")?),
        batch: size(params.count("write-batch")?),
        messages: params.count("messages")?,
        payload: size(params.count("payload")?),
        rate: (rate > 0.0).then_some(rate),
        window: size(params.count("window")?),
    };
    let least = [
        ("writers", flow.writers, 1),
        ("readers", flow.readers, 1),
        ("groups", flow.groups, 1),
        ("write-batch", flow.batch, 1),
        ("payload", flow.payload, payload::HEADER),
        ("window", flow.window, 1),
    ];
    for (name, value, least) in least {
        if value < least {
            return Err(params.wrong(name, format!("{value} is below {least}")));
        }
    }
    if !flow.messages.is_multiple_of(flow.batch as u64) {
        let reason = format!(
            "{} is no multiple of the batch of {}",
            flow.messages, flow.batch
        );
        return Err(params.wrong("messages", reason));
    }
    if flow.rate.is_some() && flow.window > 1 {
        let reason = "a window is for writers without a rate".to_string();
        return Err(params.wrong("window", reason));
    }
    Ok(flow)
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn metrics(flow: &Flow, flowed: &Flowed) -> BTreeMap<String, f64> {
    let start_ns = flowed.writes.started_ns;
    let seconds = |until_ns: u64| (until_ns.saturating_sub(start_ns)) as f64 / 1e9;
    let write_s = seconds(flowed.writes.ended_ns);
    let read_s = seconds(flowed.read.last_ns);
    let mut metrics = BTreeMap::from([
        ("throughput".to_string(), flow.messages as f64 / write_s),
        ("reads".to_string(), flowed.read.messages as f64 / read_s),
        (
            "io-rate".to_string(),
            (flow.messages * flow.payload as u64) as f64 / write_s,
        ),
        ("backlog-max".to_string(), flowed.backlog.max() as f64),
        ("empty-polls".to_string(), flowed.read.empty as f64),
    ]);
    quantiles(&mut metrics, "write", &flowed.writes.recorder.corrected);
    quantiles(&mut metrics, "read", &flowed.read.polls);
    // Of messages that wait in a growing backlog the wait says nothing but how long the run was.
    if flow
        .rate
        .is_some_and(|rate| flowed.backlog.grew(rate).is_none())
    {
        quantiles(&mut metrics, "end-to-end", &flowed.read.end_to_end);
    }
    metrics
}

/// In milliseconds.
fn quantiles(metrics: &mut BTreeMap<String, f64>, name: &str, of: &Latencies) {
    for (label, p) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)] {
        if let Some(ns) = of.quantile_ns(p) {
            metrics.insert(format!("{name}-{label}"), ns as f64 / 1e6);
        }
    }
}

fn facts(flow: &Flow, flowed: &Flowed, server: &Server) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::from([("server".to_string(), server.version())]);
    if let Some(rate) = flow.rate {
        facts.insert("rate".to_string(), flowed.rate_kept(rate));
    }
    facts
}
