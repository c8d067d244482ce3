//! `dyno ingest watch` as it is written.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use dyno_ingest_watch::Whose;

use super::feeds::feed;
use super::{PubsubPlaceArgs, ServerLoadArgs};
use crate::units::{bytes, count, duration, share};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest watch archives --into spots\n  \
    dyno ingest watch archives --into spots --once --json\n  \
    dyno ingest watch archives --into clickhouse://loader@db1:8123/wspr.bronze\n  \
    dyno ingest watch mqtt://mqtt.pskreporter.info/pskr/filter/v2/# --into spots --metrics 127.0.0.1:9431\n  \
    dyno ingest watch pubsub://spots --dsn postgres://log@db/log --into spots --batch-wait 5s\n\n\
    A folder's file is loaded as `dyno ingest load` would, once it has not changed for --settle; what changes later is\n\
    loaded anew. A feed of MQTT is written into files of an hour in --spool, which are loaded when they are whole; a\n\
    table takes one such feed, as hours of two would have the same names. A topic's records are lines of a feed; the\n\
    offsets are in the table's ledger, in one commit with their rows. Whatever is killed and when, the same command\n\
    goes on, and each row is in the table once. Ctrl-C ends it cleanly; then the exit is 0, unless --once left a file\n\
    that cannot be loaded, which is 1.")]
pub struct WatchArgs {
    /// A folder, mqtt://USER@HOST:PORT/TOPIC (mqtts:// with --tls-ca), or pubsub://TOPIC
    #[arg(value_name = "SOURCE")]
    pub source: String,
    /// The table's directory, or clickhouse://USER@HOST:PORT/DATABASE.TABLE; made when missing
    #[arg(long, value_name = "DIR|ADDRESS")]
    pub into: PathBuf,
    /// Whose lines they are [default: what a file begins with; psk of mqtt://, wspr of pubsub://]
    #[arg(long, value_parser = feed())]
    pub feed: Option<Whose>,
    /// End when all that is there now is in the table
    #[arg(long)]
    pub once: bool,
    /// Metrics for Prometheus at http://HOST:PORT/metrics, on this machine only
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Threads at work [default: all]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Share of bad rows that a file may have; records of a topic may all be bad, and are kept aside
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.1%")]
    pub max_bad: f64,
    /// Memory to stay within
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub memory: u64,
    /// Print a summary as JSON at the end
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub folder: WatchFolderArgs,
    #[command(flatten)]
    pub live: WatchLiveArgs,
    #[command(flatten)]
    pub stream: WatchStreamArgs,
    #[command(flatten)]
    pub server: ServerLoadArgs,
}

/// For a folder.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Of a folder")]
pub struct WatchFolderArgs {
    /// A file is complete when it has not changed for so long [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub settle: Option<Duration>,
    /// List the folder's files this often [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub every: Option<Duration>,
}

/// For a live feed.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Of a live feed")]
pub struct WatchLiveArgs {
    /// Where the files of an hour go; keep them, or remove those that are in the table [default: DIR.spool beside the
    /// table]
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// What we call ourselves to the broker [default: dyno- and the number of the process]
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
}

/// For a topic.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Of a topic")]
pub struct WatchStreamArgs {
    /// Commit when a partition has so many records [default: 1M]
    #[arg(long, value_name = "N", value_parser = count)]
    pub batch_records: Option<u64>,
    /// Or so many bytes [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub batch_bytes: Option<u64>,
    /// Or when the first of them has waited so long [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub batch_wait: Option<Duration>,
    /// Skip records that retention removed before they were loaded, instead of stopping
    #[arg(long)]
    pub skip_lost: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}
