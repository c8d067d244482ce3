//! `dyno ingest watch`: what arrives, into a table.

mod target;
mod topic;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use dyno_ingest::load::Options;
use dyno_ingest_collect::{
    Broker, Collector, Metrics as CollectMetrics, Settings as CollectSettings,
};
use dyno_ingest_feeds::{psk, wspr};
use dyno_ingest_watch::{
    Batching, Folder, FolderSettings, FolderSummary, Metrics, Stream, StreamSettings, live,
};
use dyno_serve::{Endpoint, Registry, Settings as EndpointSettings, tls};
use dyno_suite::Stop;
use serde_json::{Value, json};
use tracing::info;

use self::target::WatchTarget;
use self::topic::Topic;
use super::{all_threads, now_ms};
use crate::args::WatchArgs;
use crate::exit::Exit;
use crate::logging;
use crate::terminal;

/// Holds the broker's password, which no argument and no address holds.
const PASSWORD: &str = "DYNO_MQTT_PASSWORD";
/// Waits before the next attempt at a broker that is away.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long the connection to a broker may be silent.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const SETTLE: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_secs(1);
const BATCH_RECORDS: u64 = 1_000_000;
const BATCH_BYTES: u64 = 64 << 20;
const BATCH_WAIT: Duration = Duration::from_secs(1);

/// Where what arrives comes from.
enum Source<'a> {
    Folder(&'a Path),
    Live(Broker),
    Topic(&'a str),
}

pub fn run(args: &WatchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    logging::start(args.log);
    let source = source(args)?;
    refuse_options(args, &source)?;
    let options = Options {
        workers: args.threads.unwrap_or_else(all_threads),
        max_bad: match source {
            // The end of a batch is arbitrary, so a share of bad rows in it means nothing.
            Source::Topic(_) => 1.0,
            _ => args.max_bad,
        },
        memory: usize::try_from(args.memory).context("--memory")?,
        ..Options::default()
    };
    let place = WatchTarget::open(args, options)?;
    let registry = Registry::new();
    let metrics = Metrics::new(&registry)?;
    let endpoint = args
        .metrics
        .map(|at| Endpoint::start(at, registry.clone(), EndpointSettings::default()))
        .transpose()?;
    if let Some(endpoint) = &endpoint {
        info!("metrics at http://{}/metrics", endpoint.address());
    }
    let (summary, exit) = match source {
        Source::Folder(folder) => folder_into(args, folder, &place, metrics, stop)?,
        Source::Live(broker) => live_into(args, broker, &place, metrics, &registry, stop)?,
        Source::Topic(topic) => topic_into(args, topic, &place, metrics, stop)?,
    };
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&summary)?)?;
    } else {
        let words = summary.as_object().into_iter().flatten();
        let words: Vec<String> = words
            .map(|(name, count)| format!("{count} {}", name.replace('_', " ")))
            .collect();
        terminal::print(&words.join(", "))?;
    }
    Ok(exit)
}

/// Announces the watch. Called after the last check that can refuse the arguments.
fn log_begin(args: &WatchArgs) {
    info!("watching {} into {}", args.source, args.into.display());
}

fn source(args: &WatchArgs) -> anyhow::Result<Source<'_>> {
    if let Some(topic) = args.source.strip_prefix("pubsub://") {
        if topic.is_empty() || topic.contains('/') {
            bail!("{:?} names no topic: write pubsub://TOPIC", args.source);
        }
        return Ok(Source::Topic(topic));
    }
    if args.source.contains("://") {
        // The parser of addresses shows no password that was written into one.
        return Ok(Source::Live(args.source.parse()?));
    }
    let folder = Path::new(&args.source);
    if !folder.is_dir() {
        bail!(
            "{} is not a folder, mqtt://... or pubsub://...",
            args.source
        );
    }
    Ok(Source::Folder(folder))
}

/// Refuses options that only another source understands, because ignoring them silently would
/// mislead the user.
fn refuse_options(args: &WatchArgs, source: &Source<'_>) -> anyhow::Result<()> {
    let (folder, live, stream) = (&args.folder, &args.live, &args.stream);
    let of_folder = [
        ("--settle", folder.settle.is_some()),
        ("--every", folder.every.is_some()),
    ];
    let of_live = [
        ("--spool", live.spool.is_some()),
        ("--client", live.client.is_some()),
    ];
    let of_topic = [
        ("--batch-records", stream.batch_records.is_some()),
        ("--batch-bytes", stream.batch_bytes.is_some()),
        ("--batch-wait", stream.batch_wait.is_some()),
        ("--skip-lost", stream.skip_lost),
        ("--broker", stream.place.broker.is_some()),
        ("--dsn", stream.place.dsn.is_some()),
        ("--token-file", stream.place.token_file.is_some()),
    ];
    // Topics and live feeds come over TLS both.
    let of_network = [("--tls-ca", stream.place.tls_ca.is_some())];
    let others: &[&[(&str, bool)]] = match source {
        Source::Folder(_) => &[&of_live, &of_topic, &of_network],
        Source::Live(_) => &[&of_folder, &of_topic],
        Source::Topic(_) => &[&of_folder, &of_live],
    };
    match others.concat().iter().find(|(_, given)| *given) {
        Some((option, _)) => bail!("{option} is for another source than {}", args.source),
        None => Ok(()),
    }
}

fn folder_into(
    args: &WatchArgs,
    folder: &Path,
    place: &WatchTarget<'_>,
    metrics: Metrics,
    stop: &Stop,
) -> anyhow::Result<(Value, Exit)> {
    let settings = FolderSettings {
        folder: folder.to_owned(),
        feed: args.feed,
        settle: args.folder.settle.unwrap_or(SETTLE),
        // A short period is for tests. Without a floor it would be a busy loop over the directory.
        every: args
            .folder
            .every
            .unwrap_or(EVERY)
            .max(Duration::from_millis(10)),
        once: args.once,
    };
    let mut watched = Folder::new(settings, place.destination(), metrics);
    log_begin(args);
    let summary = watched.run(&stop.shared())?;
    let exit = if args.once && summary.bad > 0 {
        Exit::No
    } else {
        Exit::Done
    };
    Ok((of_folder(&summary), exit))
}

fn of_folder(summary: &FolderSummary) -> Value {
    json!({
        "files_loaded": summary.loaded,
        "files_there_already": summary.there,
        "files_bad": summary.bad,
        "rows": summary.rows,
    })
}

fn live_into(
    args: &WatchArgs,
    broker: Broker,
    place: &WatchTarget<'_>,
    metrics: Metrics,
    registry: &Registry,
    stop: &Stop,
) -> anyhow::Result<(Value, Exit)> {
    let psk = &psk::FEED;
    if args.once {
        bail!("--once: a live feed has no end; stop it with Ctrl-C");
    }
    if args.feed.is_some_and(|feed| feed.name != psk.name) {
        bail!("--feed: what an MQTT broker sends is collected as feed psk");
    }
    let spool = match (&args.live.spool, place) {
        (Some(spool), _) => spool.clone(),
        (None, WatchTarget::Directory(_)) => beside(&args.into),
        (None, WatchTarget::Server(_)) => bail!("--spool: say where the files of an hour go"),
    };
    let client = args.live.client.clone();
    let settings = CollectSettings {
        broker: Broker {
            password: env::var(PASSWORD).ok(),
            ..broker
        },
        tls: args
            .stream
            .place
            .tls_ca
            .as_deref()
            .map(tls::client)
            .transpose()?,
        folder: spool.clone(),
        client_id: client.unwrap_or_else(|| format!("dyno-{}", std::process::id())),
        keep_alive: KEEP_ALIVE,
        waits: WAITS,
        clock: Arc::new(now_ms),
    };
    // The collector writes into the spool, and the folder watch loads from it. After a crash the
    // spool's files and the table's ledger say together what is still to be loaded.
    let collector = Collector::new(settings, CollectMetrics::new(registry)?)?;
    let settings = FolderSettings {
        folder: spool,
        feed: Some(psk),
        // A file of an hour has its name when it is whole.
        settle: Duration::ZERO,
        every: EVERY,
        once: false,
    };
    let folder = Folder::new(settings, place.destination(), metrics);
    log_begin(args);
    let (collected, loaded) = live::run(collector, folder, stop.flag())?;
    let mut summary = of_folder(&loaded);
    summary["messages"] = collected.messages.into();
    summary["connections"] = collected.connections.into();
    summary["numbers_left_out"] = collected.missing.into();
    Ok((summary, Exit::Done))
}

/// The default spool of a table, `spots.spool` beside `spots`.
fn beside(table: &Path) -> PathBuf {
    let mut name = table.file_name().unwrap_or_default().to_owned();
    name.push(".spool");
    table.with_file_name(name)
}

fn topic_into(
    args: &WatchArgs,
    topic: &str,
    place: &WatchTarget<'_>,
    metrics: Metrics,
    stop: &Stop,
) -> anyhow::Result<(Value, Exit)> {
    // The ledger of a directory keeps offsets in the commit that adds the rows. Without that, a
    // crash between the two would lose or repeat records.
    if matches!(place, WatchTarget::Server(_)) {
        bail!(
            "records of a topic go into a directory: the ledger in a ClickHouse server keeps no offsets"
        );
    }
    let stream = &args.stream;
    let bytes = stream.batch_bytes.unwrap_or(BATCH_BYTES);
    let settings = StreamSettings {
        topic: topic.to_owned(),
        feed: args.feed.unwrap_or(&wspr::FEED),
        batching: Batching {
            records: stream.batch_records.unwrap_or(BATCH_RECORDS).max(1),
            bytes: usize::try_from(bytes).context("--batch-bytes")?.max(1),
            wait: stream.batch_wait.unwrap_or(BATCH_WAIT),
        },
        skip_lost: stream.skip_lost,
        once: args.once,
        patience: args.server.patience,
    };
    let mut source = Topic::new(topic, &stream.place)?;
    let mut watched = Stream::new(settings, &mut source, place.destination(), metrics)?;
    log_begin(args);
    let summary = watched.run(&stop.shared())?;
    let summary = json!({
        "records": summary.records,
        "rows": summary.rows,
        "bad_rows": summary.bad_rows,
        "commits": summary.commits,
        "records_lost": summary.lost,
    });
    Ok((summary, Exit::Done))
}
