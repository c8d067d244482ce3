//! The flags of `dyno ingest watch`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use dyno_ingest_feeds::Feed;

use super::feeds::feed;
use super::{Catalog, LogArgs, PubsubPlaceArgs, ServerLoadArgs};
use crate::units::{bytes, count, duration, one_or_more, share};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno ingest watch archives --into spots
  dyno ingest watch archives --into spots --once --json
  dyno ingest watch archives --into clickhouse://loader@db1:8123/wspr.bronze
  dyno ingest watch mqtt://mqtt.pskreporter.info/pskr/filter/v2/# --into spots
  dyno ingest watch pubsub://spots --dsn postgres://log@db/log --into spots --batch-wait 5s

From a folder, a file is loaded as `dyno ingest load` would load it, once it has not changed for \
--settle; a file that changes later is loaded again.

From MQTT, messages are written into files of an hour in --spool, and each file is loaded when its \
hour is over. A table reads one such feed, because the hours of two would have the same names.

From a topic, each record is a line of a feed. A topic that begins with lines of another feed is \
refused. The offsets are committed together with the rows.

After a crash, run the same command again: each row is in the table once. Ctrl-C stops it cleanly \
with exit code 0, or 1 when --once left a file that cannot be loaded.")]
pub struct WatchArgs {
    /// A folder, mqtt://USER@HOST:PORT/TOPIC (mqtts:// needs --tls-ca), or pubsub://TOPIC
    #[arg(value_name = "SOURCE")]
    pub source: String,
    /// Load into this directory, or clickhouse://USER@HOST:PORT/DATABASE.TABLE; made when missing
    #[arg(long, value_name = "DIR|ADDRESS")]
    pub into: PathBuf,
    /// Read lines of FEED [default: detected in files; psk from mqtt://, wspr from pubsub://]
    #[arg(long, value_name = "FEED", value_parser = feed())]
    pub feed: Option<&'static Feed>,
    /// Describe the table in CATALOG too; a table that has it keeps it up to date
    #[arg(long, value_enum, value_name = "CATALOG")]
    pub catalog: Option<Catalog>,
    /// Stop when everything that is there now is in the table
    #[arg(long)]
    pub once: bool,
    /// Serve Prometheus metrics at http://HOST:PORT/metrics, on this machine only
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Use N threads [default: all]
    #[arg(long, alias = "workers", value_name = "N", value_parser = one_or_more)]
    pub threads: Option<usize>,
    /// Reject a file with more bad rows than SHARE; bad records of a topic are always set aside
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.1%")]
    pub max_bad: f64,
    /// Use at most SIZE of memory
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub memory: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub folder: WatchFolderArgs,
    #[command(flatten)]
    pub live: WatchLiveArgs,
    #[command(flatten)]
    pub stream: WatchStreamArgs,
    #[command(flatten)]
    pub server: ServerLoadArgs,
}

/// Flags that apply only to a folder.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "From a folder")]
pub struct WatchFolderArgs {
    /// Treat a file as complete when it has not changed for TIME [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub settle: Option<Duration>,
    /// List the folder's files every TIME [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub every: Option<Duration>,
}

/// Flags that apply only to a live feed.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "From a live feed")]
pub struct WatchLiveArgs {
    /// Keep the files of an hour in DIR; you may remove those that are in the table
    /// [default: TABLE.spool beside the table]
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// Connect to the broker as NAME [default: dyno- and the process id]
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
}

/// Flags that apply only to a topic.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "From a topic")]
pub struct WatchStreamArgs {
    /// Commit when a partition has N records [default: 1M]
    #[arg(long, value_name = "N", value_parser = count)]
    pub batch_records: Option<u64>,
    /// Commit when a partition has SIZE of records [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub batch_bytes: Option<u64>,
    /// Commit when the first of the records has waited TIME [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub batch_wait: Option<Duration>,
    /// Skip records that retention removed before they were loaded, instead of stopping
    #[arg(long)]
    pub skip_lost: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}
