//! `dyno ingest collect`, `dyno ingest fetch`, and the names of feeds.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use dyno_ingest_feeds::{FEEDS, Feed, named};
use dyno_ingest_fetch::Published;

use super::LogArgs;
use crate::units::duration;

/// Parses the name of a feed; clap lists the names in help and in errors.
pub fn feed() -> impl TypedValueParser<Value = &'static Feed> {
    let names = FEEDS.iter().map(|feed| feed.name);
    PossibleValuesParser::new(names)
        .try_map(|name| named(&name).ok_or_else(|| format!("{name} is not a feed")))
}

/// What each feed is: `rbn (Reverse Beacon Network), ...`.
pub fn all_feeds() -> String {
    let feeds = FEEDS.iter();
    let feeds = feeds.map(|feed| format!("{} ({})", feed.name, feed.about));
    feeds.collect::<Vec<_>>().join(", ")
}

/// What an archive of each feed covers: `a month of wspr, ...`.
pub fn all_archives() -> String {
    let feeds = FEEDS.iter();
    let feeds = feeds.map(|feed| format!("{} of {}", feed.covers, feed.name));
    feeds.collect::<Vec<_>>().join(", ")
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno ingest collect mqtt://mqtt.pskreporter.info/pskr/filter/v2/# --out psk
  dyno ingest collect mqtt://127.0.0.1:1883/pskr/20m/# --out psk --metrics 127.0.0.1:9431
  dyno ingest collect mqtts://broker.example/a/# --tls-ca /etc/ssl/certs/ca.pem --out psk
  dyno ingest load psk/*.jsonl.gz --into spots --feed psk

Each message becomes one line with its time and its topic; losing and regaining the connection \
are lines too. While an hour lasts its file is called NAME.jsonl.open; it gets its final name when \
the hour is over, or on Ctrl-C. A process that is killed loses its last second at most, and the \
next one continues the file. Gaps in the sequence numbers of messages are counted; behind a filter \
they are the messages that the filter left out. Set the password in DYNO_MQTT_PASSWORD.")]
pub struct CollectArgs {
    /// Broker and topic: mqtt://USER@HOST:PORT/TOPIC, or mqtts:// for TLS
    #[arg(value_name = "ADDRESS")]
    pub broker: String,
    /// Write the files into DIR; made when missing
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Speak TLS, and trust the root certificates in PEM
    #[arg(long, value_name = "PEM")]
    pub tls_ca: Option<PathBuf>,
    /// Connect to the broker as NAME [default: dyno- and the process id]
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// Ping the broker after a silence of TIME
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub keep_alive: Duration,
    /// Serve Prometheus metrics at http://HOST:PORT/metrics, on this machine only
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno ingest fetch wspr 2026-01.. --into archives
  dyno ingest fetch rbn 2024-11-23..2024-11-24 --into days
  dyno ingest fetch wspr 2023-01 --into archives --mirror http://mirror.example/wspr/

A period is a month, a day, or a range of them; a range without an end lasts until today. A \
download that was interrupted resumes. A file that is here already is downloaded again only when \
the server has another version, as it has of the current month. A file gets its name when it is \
complete and its checksums match.")]
pub struct FetchArgs {
    /// Publisher of the archives
    #[arg(value_name = "FEED", value_parser = published())]
    pub feed: Published,
    /// Months or days to download
    #[arg(value_name = "PERIOD")]
    pub period: String,
    /// Download into DIR; made when missing
    #[arg(long, value_name = "DIR")]
    pub into: PathBuf,
    /// Download from URL [default: the publisher's address]
    #[arg(long, alias = "from", value_name = "URL")]
    pub mirror: Option<String>,
    /// Give up on a file after N attempts in a row that downloaded nothing
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub attempts: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Parses the name of a feed whose archives are published as files.
fn published() -> impl TypedValueParser<Value = Published> {
    PossibleValuesParser::new(["wspr", "rbn"]).try_map(|name| {
        Published::named(&name).ok_or_else(|| format!("{name} is not published file by file"))
    })
}
