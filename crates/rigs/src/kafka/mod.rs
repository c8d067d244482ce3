//! Kafka's own command line clients against a log: ours and Nisshi's in front of PostgreSQL, or a
//! broker of Apache Kafka. Clients, their settings and their counts are the same for all.
//!
//! A load is a number of records and not a time, because that is what these clients take.

mod clients;
mod installed;
mod metrics;
mod servers;

use std::collections::BTreeMap;
use std::path::Path;

use dyno_record::Answer;
use dyno_suite::protocol::{Phase, Reply, Request};

use crate::process::ProcessError;
use crate::{Params, RigError};
use clients::Tools;
pub(crate) use installed::jars_missing as missing;
use servers::{Kind, Served};

/// The peer that has the jars of Kafka, of which both its broker and the clients are made.
pub(crate) const JARS: &str = "apache-kafka";
/// Kafka with a sync of its log before each acknowledgement.
pub(crate) const FLUSH: &str = "kafka-flush";
/// Kafka as its own configuration has it, which acknowledges what the page cache holds.
pub(crate) const AS_INSTALLED: &str = "kafka-as-installed";
/// Nisshi on PostgreSQL.
pub(crate) const NISSHI: &str = "nisshi";
/// The version of Nisshi, as `peers/nisshi.toml` declares it.
pub(crate) const NISSHI_VERSION: &str = "0.8.1";
/// The version of the jars, as `peers/apache-kafka.toml` declares it.
pub(crate) const VERSION: &str = "4.4.0";

/// The topic of a run; each run has a server of its own.
const TOPIC: &str = "flow";
/// Records of a run of which only the answer is wanted.
const VERIFYING: u64 = 2_000;

/// Why a run of Kafka's clients did not count.
#[derive(Debug, thiserror::Error)]
pub enum KafkaError {
    /// A program could not be started, or ended when it should not; or a file or a port was
    /// refused.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A client printed something else than its figures.
    #[error("{client} printed no figures: {last_line}")]
    NotFigures {
        /// The name of the client.
        client: &'static str,
        /// The last line that it printed.
        last_line: String,
    },
    /// The log has other records than were acknowledged, or readers got others.
    #[error("{0}")]
    Wrong(String),
}

impl From<KafkaError> for RigError {
    fn from(error: KafkaError) -> RigError {
        RigError::Workload(error.into())
    }
}

/// The part of the parameters that both workloads have.
struct Load {
    kind: Kind,
    partitions: u64,
    messages: u64,
    payload: u64,
}

impl Load {
    fn read(
        params: &mut Params<'_>,
        request: &Request,
        peer: Option<&str>,
    ) -> Result<Load, RigError> {
        let load = Load {
            kind: Kind::from_peer(peer)?,
            partitions: params.count("partitions")?,
            messages: params.count("messages")?,
            payload: params.count("payload")?,
        };
        for (name, count) in [
            ("partitions", load.partitions),
            ("messages", load.messages),
            ("payload", load.payload),
        ] {
            if count == 0 {
                return Err(params.wrong(name, "is 0; at least 1 is needed".to_owned()));
            }
        }
        Ok(match request.phase {
            Phase::Verify => Load {
                messages: load.messages.min(VERIFYING),
                ..load
            },
            _ => load,
        })
    }

    /// Starts a server with an empty topic.
    fn serve(&self, scratch: &Path) -> Result<(Served, Tools), RigError> {
        let served = Served::start(self.kind, scratch)?;
        let tools = Tools::new(served.address(), scratch)?;
        tools.create_topic(TOPIC, self.partitions)?;
        Ok((served, tools))
    }
}

/// `kafka-produce`: `messages` of `payload` bytes from `producers`, of which each first sends
/// `warmup` more that are not timed, so that compilers of Java have seen the work.
pub(crate) fn produce(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let load = Load::read(params, request, peer)?;
    let producers = at_least_one(params, "producers")?;
    let warmup = match request.phase {
        Phase::Verify => VERIFYING.min(params.count("warmup")?),
        _ => params.count("warmup")?,
    };
    let each = load.messages.div_ceil(producers);
    let (served, tools) = load.serve(&request.scratch)?;
    let before = served.used();
    let parts = tools.produce(TOPIC, producers, each, warmup, load.payload)?;
    let used = served.used().since(&before);
    // A client that gave a record up says so, and still ends as if all were well.
    let sent = producers * (each + warmup);
    let acknowledged: u64 = parts.iter().map(|part| part.sent).sum();
    let stored = tools.end_offsets(TOPIC)?;
    if acknowledged != sent || stored != acknowledged {
        let text =
            format!("{stored} records are there, {acknowledged} of {sent} were acknowledged");
        return Err(KafkaError::Wrong(text).into());
    }
    let metrics = metrics::of_producers(&parts, load.payload, &used, sent);
    reply(metrics, "every record acknowledged is in the log", &served)
}

/// `kafka-consume`: `messages` of `payload` bytes, which are in the topic before, to each of
/// `groups` of one reader, all at once.
pub(crate) fn consume(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let load = Load::read(params, request, peer)?;
    let groups = at_least_one(params, "groups")?;
    let (served, tools) = load.serve(&request.scratch)?;
    tools.produce(TOPIC, 1, load.messages, 0, load.payload)?;
    let stored = tools.end_offsets(TOPIC)?;
    if stored != load.messages {
        let text = format!("{stored} records are there of {}", load.messages);
        return Err(KafkaError::Wrong(text).into());
    }
    let before = served.used();
    let parts = tools.consume(TOPIC, groups, load.messages)?;
    let used = served.used().since(&before);
    if let Some(part) = parts.iter().find(|part| part.records != load.messages) {
        let text = format!("a group read {} of {} records", part.records, load.messages);
        return Err(KafkaError::Wrong(text).into());
    }
    let metrics = metrics::of_groups(&parts, load.payload, &used);
    reply(metrics, "every group read every record", &served)
}

fn at_least_one(params: &mut Params<'_>, name: &'static str) -> Result<u64, RigError> {
    match params.count(name)? {
        0 => Err(params.wrong(name, "is 0; at least 1 is needed".to_owned())),
        count => Ok(count),
    }
}

/// The reply of a run whose counts were right. They are not compared between systems, because each
/// was compared with what the same run had sent.
fn reply(
    metrics: BTreeMap<String, f64>,
    checked: &str,
    served: &Served,
) -> Result<Reply, RigError> {
    Ok(Reply {
        answer: Some(Answer {
            count: 1,
            checksum: checked.to_owned(),
        }),
        metrics,
        facts: BTreeMap::from([
            ("server".to_owned(), served.describe()?),
            ("client".to_owned(), format!("Apache Kafka {VERSION}, Java")),
        ]),
        ..Reply::default()
    })
}

/// Why Nisshi cannot run on this machine; `None` if it can. The clients are not a part of it.
pub(crate) fn nisshi_missing() -> Option<String> {
    installed::missing(NISSHI).or_else(crate::pubsub::server_missing)
}
