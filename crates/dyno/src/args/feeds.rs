//! Feeds, and the commands that bring their archives, as they are written.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use dyno_ingest::table::WSPR;
use dyno_ingest_feeds::{FEEDS, named};
use dyno_ingest_fetch::Published;
use dyno_ingest_watch::Whose;

use crate::units::duration;

/// One of the names that there are.
pub fn feed() -> impl TypedValueParser<Value = Whose> {
    let names = FEEDS.iter().map(|feed| feed.name());
    PossibleValuesParser::new(std::iter::once(WSPR).chain(names))
        .map(|name| named(&name).map_or(Whose::Wspr, Whose::Other))
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest collect mqtt://mqtt.pskreporter.info/pskr/filter/v2/# --out psk\n  \
    dyno ingest collect mqtt://127.0.0.1:1883/pskr/filter/v2/20m/FT8/# --out psk --metrics 127.0.0.1:9431\n  \
    dyno ingest collect mqtts://broker.example/a/# --tls-ca /etc/ssl/certs/ca-certificates.crt --out psk\n  \
    dyno ingest load psk/*.jsonl.gz --into spots --feed psk\n\n\
    Every message goes into a line with its time and topic, and what happens to the connection, too. A file appears\n\
    when its hour is over; until then it is NAME.jsonl.open, and a process that is killed leaves all but its last\n\
    second. The next one takes it up. Ctrl-C ends the hour. Numbers that messages leave out are counted: behind a\n\
    filter they are other messages. A password is taken from DYNO_MQTT_PASSWORD.")]
pub struct CollectArgs {
    /// The broker and the topic, such as mqtt://USER@HOST:PORT/TOPIC; mqtts:// for TLS
    #[arg(value_name = "ADDRESS")]
    pub broker: String,
    /// Where the files go; made when missing
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// For mqtts://: roots to trust, in PEM
    #[arg(long, value_name = "PEM")]
    pub tls_ca: Option<PathBuf>,
    /// What we call ourselves to the broker [default: dyno- and the number of the process]
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// How long the connection may be silent before it is asked whether it is there
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub keep_alive: Duration,
    /// Metrics for Prometheus at http://HOST:PORT/metrics, on this machine only
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Print a summary as JSON at the end
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno ingest fetch wspr 2026-01.. --into archives\n  \
    dyno ingest fetch rbn 2024-11-23..2024-11-24 --into days\n  \
    dyno ingest fetch wspr 2023-01 --into archives --from http://mirror.example/wspr/\n\n\
    A period is a month, a day, or two of them; one without an end goes on to today. What was cut off goes on where\n\
    it was. What is there is fetched again only when the server has another version of it, since the running month\n\
    grows. A file gets its name when it has come whole and its checksums are right.")]
pub struct FetchArgs {
    /// Whose archives
    #[arg(value_name = "FEED", value_parser = published())]
    pub feed: Published,
    /// Which of them
    #[arg(value_name = "PERIOD")]
    pub period: String,
    /// Where they go; made when missing
    #[arg(long, value_name = "DIR")]
    pub into: PathBuf,
    /// Where they are [default: their maker's address]
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// Attempts that bring nothing, one after the other, before a file is given up
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub attempts: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The feeds that are published file by file.
fn published() -> impl TypedValueParser<Value = Published> {
    PossibleValuesParser::new(["wspr", "rbn"]).try_map(|name| {
        Published::named(&name).ok_or_else(|| format!("{name} is not published file by file"))
    })
}
