//! Parses the parameters of a flow and runs it once: starts a server of its own, prepares the
//! protocol, measures the flow.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use super::FlowError;
use super::flow::Flowed;
use super::library::{Cursors, Library};
use super::original::{Original, Step};
use super::payload;
use super::queue::{EngineQueue, OriginalQueue};
use super::server::{Server, Used};
use super::shared::Flow;
use super::way::Way;
use crate::{Params, RigError};

/// A flow, and the protocol and servers that it goes through.
#[derive(Debug, Clone)]
pub(super) struct FlowParams {
    pub flow: Flow,
    name: Name,
    partitions: usize,
    read_batch: usize,
    /// How long readers of a queue let messages gather.
    linger: Duration,
    cursors: Cursors,
    servers: Servers,
}

/// The PostgreSQL servers that messages go through.
#[derive(Debug, Clone)]
enum Servers {
    /// So many private servers: one, or a primary with synchronous standbys.
    Private(usize),
    /// A server that is running already, by its connection string.
    Given(String),
}

/// The protocol that messages take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Original(Step),
    Direct,
    Broker,
    OriginalQueue,
    Queue,
}

/// The result of one flow, with the resources that it used.
pub(super) struct Measured {
    pub flowed: Flowed,
    pub used: Used,
    /// Version of the server and where its files are.
    pub server: String,
}

/// How much is written, and how fast.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Messages over all writers; see [`Flow::messages`].
    pub messages: u64,
    /// How long writers write; see [`Flow::lasts`].
    pub lasts: Option<Duration>,
    /// Messages a second; `None` for as fast as they are acknowledged.
    pub rate: Option<f64>,
}

/// Reads the parameters that describe the load.
pub(super) fn read_load(params: &mut Params<'_>) -> Result<Load, RigError> {
    let rate = params.number("rate")?;
    let lasts = params.seconds_or_none("seconds")?;
    Ok(Load {
        messages: match lasts {
            Some(_) => u64::MAX,
            None => params.count("messages")?,
        },
        lasts,
        rate: (rate > 0.0).then_some(rate),
    })
}

impl FlowParams {
    /// A flow through a log.
    pub fn log(params: &mut Params<'_>, load: Load, peer: bool) -> Result<FlowParams, RigError> {
        let name = params.text("way")?;
        let partitions = size(params.count("partitions")?);
        let parsed = FlowParams {
            flow: Flow {
                writers: size(params.count("writers")?),
                readers: size(params.count("readers")?),
                groups: size(params.count("groups")?),
                batch: size(params.count("write-batch")?),
                messages: load.messages,
                lasts: load.lasts,
                payload: size(params.count("payload")?),
                rate: load.rate,
                window: size(params.count("window")?),
                before: params.count_or("before", 0)?,
                ordered: true,
                report: read_report(params)?,
            },
            name: match name {
                _ if peer => Name::Original(Step::TextArray),
                "text-array" => Name::Original(Step::TextArray),
                "binary" => Name::Original(Step::Binary),
                "lean" => Name::Original(Step::Lean),
                "direct" => Name::Direct,
                "broker" => Name::Broker,
                other => {
                    let known = "text-array, binary, lean, direct, broker";
                    return Err(params.wrong("way", format!("`{other}` is not one of {known}")));
                }
            },
            partitions,
            read_batch: size(params.count("read-batch")?),
            linger: Duration::ZERO,
            cursors: read_cursors(params)?,
            servers: read_servers(params)?,
        };
        if matches!(parsed.name, Name::Original(_)) && parsed.flow.readers != partitions {
            let reason = format!("{name} has one reader for each of {partitions} partitions");
            return Err(params.wrong("readers", reason));
        }
        parsed.check(params)?;
        Ok(parsed)
    }

    /// A flow through a queue.
    pub fn queue(params: &mut Params<'_>, load: Load, peer: bool) -> Result<FlowParams, RigError> {
        let parsed = FlowParams {
            flow: Flow {
                writers: size(params.count("writers")?),
                readers: size(params.count("readers")?),
                groups: 1,
                batch: size(params.count("write-batch")?),
                messages: load.messages,
                lasts: load.lasts,
                payload: size(params.count("payload")?),
                rate: load.rate,
                window: 1,
                before: 0,
                ordered: false,
                report: read_report(params)?,
            },
            name: if peer {
                Name::OriginalQueue
            } else {
                Name::Queue
            },
            partitions: 0,
            read_batch: size(params.count("read-batch")?),
            linger: Duration::from_millis(params.count_or("linger-ms", 0)?),
            cursors: Cursors::EveryPoll,
            servers: read_servers(params)?,
        };
        parsed.check(params)?;
        Ok(parsed)
    }

    fn check(&self, params: &Params<'_>) -> Result<(), RigError> {
        let flow = &self.flow;
        let least = [
            ("writers", flow.writers, 1),
            ("readers", flow.readers, 1),
            ("groups", flow.groups, 1),
            ("write-batch", flow.batch, 1),
            ("read-batch", self.read_batch, 1),
            ("payload", flow.payload, payload::HEADER),
            ("window", flow.window, 1),
        ];
        for (name, value, least) in least {
            if value < least {
                return Err(params.wrong(name, format!("{value} is below {least}")));
            }
        }
        if flow.lasts.is_none() && !flow.messages.is_multiple_of(flow.batch as u64) {
            let (messages, batch) = (flow.messages, flow.batch);
            let reason = format!("{messages} is not a multiple of the batch of {batch}");
            return Err(params.wrong("messages", reason));
        }
        if !flow.before.is_multiple_of(flow.batch as u64) {
            let (before, batch) = (flow.before, flow.batch);
            let reason = format!("{before} is not a multiple of the batch of {batch}");
            return Err(params.wrong("before", reason));
        }
        if flow.before > 0 && flow.readers > 1 {
            // Members of a group that only share the partitions out while messages are there
            // already would read some of them twice.
            let reason = "messages that are there before are for one reader of each group";
            return Err(params.wrong("before", reason.to_string()));
        }
        if flow.rate.is_some() && flow.window > 1 {
            let reason = "a window is for writers without a rate".to_string();
            return Err(params.wrong("window", reason));
        }
        Ok(())
    }

    /// The same flow at `rate`, for about `seconds`.
    pub fn under(&self, rate: f64, seconds: f64) -> FlowParams {
        let batch = self.flow.batch as u64;
        let batches = (rate * seconds / batch as f64).ceil() as u64;
        let mut params = self.clone();
        params.flow.messages = batches.max(self.flow.writers as u64) * batch;
        params.flow.lasts = None;
        params.flow.rate = Some(rate);
        params
    }

    /// The same flow for at most `most`, if it ends by time.
    pub fn lasting(&self, most: Duration) -> FlowParams {
        let mut params = self.clone();
        params.flow.lasts = params.flow.lasts.map(|lasts| lasts.min(most));
        params
    }

    /// Starts a server, measures the flow on it, and stops the server.
    pub fn measure(&self, scratch: &Path) -> Result<Measured, FlowError> {
        let flow = &self.flow;
        // A reader of the library has one session that reads, and a second one if it waits for
        // notifications of appends or has relaxed cursors.
        let connections = flow.writers + flow.groups * flow.readers * 2 + self.partitions;
        let server = match &self.servers {
            Servers::Private(nodes) => Server::start(scratch, connections, *nodes)?,
            Servers::Given(dsn) => Server::on(dsn)?,
        };
        let way = self.way(&server);
        way.prepare()?;
        let flowed = flow.run(&*way, server.watched().as_ref(), || server.used(&*way))?;
        let used = server.used(&*way)?.since(&flowed.used_before);
        Ok(Measured {
            flowed,
            used,
            server: server.describe()?,
        })
    }

    fn way(&self, server: &Server) -> Box<dyn Way> {
        match self.name {
            Name::Original(step) => Box::new(Original {
                dsn: server.dsn(),
                step,
                partitions: self.partitions,
                groups: self.flow.groups,
                read_batch: self.read_batch,
            }),
            Name::Direct | Name::Broker => Box::new(Library {
                dsn: server.dsn(),
                partitions: self.partitions,
                readers: self.flow.readers,
                window: self.flow.window,
                cursors: self.cursors,
                read_bytes: self.read_batch.saturating_mul(self.flow.payload),
                broker: (self.name == Name::Broker).then(|| server.broker_socket()),
                process: Mutex::new(None),
            }),
            Name::OriginalQueue => Box::new(OriginalQueue { dsn: server.dsn() }),
            Name::Queue => Box::new(EngineQueue {
                dsn: server.dsn(),
                batch: self.read_batch,
                linger: self.linger,
            }),
        }
    }
}

/// When readers commit; `every-poll` by default.
fn read_cursors(params: &mut Params<'_>) -> Result<Cursors, RigError> {
    let name = params.text_or_none("cursors")?.unwrap_or("every-poll");
    Cursors::named(name).ok_or_else(|| {
        let reason = format!("`{name}` is neither every-poll nor relaxed");
        params.wrong("cursors", reason)
    })
}

/// A server that is running, or a number of private ones; one private server by default.
fn read_servers(params: &mut Params<'_>) -> Result<Servers, RigError> {
    let nodes = params.count_or("nodes", 1)?;
    if !(1..=5).contains(&nodes) {
        return Err(params.wrong("nodes", format!("{nodes} is not within 1 and 5")));
    }
    match params.text_or_none("dsn")? {
        None => Ok(Servers::Private(size(nodes))),
        Some(dsn) if nodes == 1 => Ok(Servers::Given(dsn.to_string())),
        Some(_) => Err(params.wrong("nodes", "a given server has the nodes it has".to_string())),
    }
}

/// Milliseconds between two lines of progress; `None` for 0 or by default.
fn read_report(params: &mut Params<'_>) -> Result<Option<Duration>, RigError> {
    let every = params.count_or("report-ms", 0)?;
    Ok((every > 0).then(|| Duration::from_millis(every)))
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
