//! `dyno pubsub ...` as it is written.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use dyno_pubsub::record::Codec;
use dyno_pubsub::{NamedCluster, Start};

use super::{PubsubBenchArgs, PubsubCheckArgs, PubsubCheckJobArgs};
use crate::units::{bytes, count, duration, start};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pubsub serve --data log\n  \
    dyno pubsub topic create orders --partitions 4\n  \
    seq 1000 | dyno pubsub produce orders\n  \
    dyno pubsub consume orders --group billing --from earliest --count 1000\n  \
    dyno pubsub status\n\n\
    Commands talk to the broker at --broker, or with --dsn straight to PostgreSQL.")]
pub struct PubsubArgs {
    #[command(subcommand)]
    pub command: PubsubCommand,
}

#[derive(Debug, Subcommand)]
pub enum PubsubCommand {
    /// Run a broker, on a private PostgreSQL server or on yours
    Serve(PubsubServeArgs),
    /// Put the schema and its SQL functions into a database, or bring them up to date
    Install(PubsubInstallArgs),
    /// Make, change, remove and list topics
    Topic(PubsubTopicArgs),
    /// Send lines of standard input as records
    Produce(PubsubProduceArgs),
    /// Print records as a member of a group
    Consume(PubsubConsumeArgs),
    /// Show groups with their members and how far they are behind
    Group(PubsubGroupArgs),
    /// Show topics, partitions, queues, sizes and brokers
    Status(PubsubStatusArgs),
    /// Kill servers, brokers and clients under load, and check that nothing is lost or twice
    Check(PubsubCheckArgs),
    /// Measure, with the flags of the benchmark that started this
    Bench(PubsubBenchArgs),
    /// Be one client of a check
    #[command(hide = true)]
    CheckJob(PubsubCheckJobArgs),
}

/// Where the log is.
#[derive(Debug, Clone, ClapArgs)]
pub struct PubsubPlaceArgs {
    /// A broker: HOST:PORT or unix:PATH [default: 127.0.0.1:7411]
    #[arg(long, value_name = "ADDR", conflicts_with = "dsn")]
    pub broker: Option<String>,
    /// A PostgreSQL server, without a broker: postgres://... or key=value
    #[arg(long, value_name = "DSN")]
    pub dsn: Option<String>,
    /// A file with the token that the broker asks for [default: what DYNO_TOKEN holds]
    #[arg(long, value_name = "FILE", conflicts_with = "dsn")]
    pub token_file: Option<PathBuf>,
    /// Speak TLS to the broker, whose certificate one of these roots has signed
    #[arg(long, value_name = "PEM", conflicts_with = "dsn")]
    pub tls_ca: Option<PathBuf>,
}

/// Where brokers listen unless told otherwise.
pub const BROKER_DEFAULT: &str = "127.0.0.1:7411";

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pubsub serve --data log\n  \
    dyno pubsub serve --data log --listen unix:/run/dyno/log.sock --memory 1GiB\n  \
    dyno pubsub serve --dsn postgres://log@db/log --listen 10.0.0.5:7411 --token-file token --tls-cert c.pem --tls-key k.pem\n\n\
    Prints where it listens when it is ready, and how to reach its server without it. Addresses beyond this machine are\n\
    refused without a token. Ctrl-C finishes what was accepted. The database at --dsn needs the schema: `dyno pubsub install`.")]
pub struct PubsubServeArgs {
    /// Keep a private PostgreSQL server here, made at the first start
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "dsn",
        conflicts_with = "dsn"
    )]
    pub data: Option<PathBuf>,
    /// Use this PostgreSQL server
    #[arg(long, value_name = "DSN")]
    pub dsn: Option<String>,
    /// Where to listen: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDR", default_value = BROKER_DEFAULT)]
    pub listen: String,
    /// Metrics for Prometheus at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
    /// Memory for queues and for what was just written
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "256MiB")]
    pub memory: u64,
    /// How long an append waits for more records; without, only while another append is under way
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    pub linger: Duration,
    /// How long a broker keeps its partitions without a sign of life
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s")]
    pub lease: Duration,
    /// The system's user under which PostgreSQL runs when root starts it [default: postgres]
    #[arg(long, value_name = "USER", conflicts_with = "dsn")]
    pub pg_user: Option<String>,
    /// A file with the token that clients must show
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate chain, for TLS on TCP and on the metrics
    #[arg(long, value_name = "PEM", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key to it
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pubsub install --dsn postgres://postgres@localhost/app\n  \
    psql app -c \"SELECT pubsub.send('orders', NULL, 'hello')\"")]
pub struct PubsubInstallArgs {
    /// The PostgreSQL server
    #[arg(long, value_name = "DSN")]
    pub dsn: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct PubsubTopicArgs {
    #[command(subcommand)]
    pub command: PubsubTopicCommand,
}

#[derive(Debug, Subcommand)]
pub enum PubsubTopicCommand {
    /// Make a topic
    Create(PubsubTopicCreateArgs),
    /// Change how many partitions a topic has, or how long it keeps its records
    Alter(PubsubTopicAlterArgs),
    /// Remove a topic with its records
    Drop(PubsubTopicDropArgs),
    /// List topics
    List(PubsubStatusArgs),
}

/// How long records are kept.
#[derive(Debug, Clone, ClapArgs)]
pub struct PubsubRetentionArgs {
    /// Keep records this long; `0s` for ever
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub retention: Option<Duration>,
    /// Keep at most this much in a partition; 0 without limit
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub retention_bytes: Option<u64>,
    /// Keep what a group has not read yet, even beyond that
    #[arg(long, value_name = "true|false")]
    pub retain_for_groups: Option<bool>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pubsub topic create orders --partitions 4\n  \
    dyno pubsub topic create clicks --partitions 16 --retention 168h --compression zstd\n  \
    dyno pubsub topic create wide --partitions 8 --dsn 'host=/run/a dbname=log' --on 'b=host=/run/b dbname=log'")]
pub struct PubsubTopicCreateArgs {
    /// Letters, digits, dot, underscore and hyphen
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Records with the same key go to the same partition, in order
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub partitions: u32,
    /// What clients do to batches: none, lz4 or zstd. SQL reads only none
    #[arg(long, value_name = "CODEC", default_value = "none", value_parser = Codec::named)]
    pub compression: Codec,
    /// Another cluster that gets partitions in turn with the one of --dsn, which is the topic's home; may be given
    /// several times. Without a password: see the manual
    #[arg(long = "on", value_name = "CLUSTER=DSN", requires = "dsn", value_parser = cluster)]
    pub on: Vec<NamedCluster>,
    #[command(flatten)]
    pub retention: PubsubRetentionArgs,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

/// A cluster's name and its connection string.
fn cluster(text: &str) -> Result<NamedCluster, String> {
    match text.split_once('=') {
        Some((name, dsn)) if !name.is_empty() && !dsn.is_empty() => Ok(NamedCluster {
            name: name.to_owned(),
            dsn: dsn.to_owned(),
        }),
        _ => Err("it is NAME=DSN, such as b=postgres://user@host/database".to_owned()),
    }
}

#[derive(Debug, ClapArgs)]
pub struct PubsubTopicAlterArgs {
    /// The topic
    #[arg(value_name = "NAME")]
    pub name: String,
    /// More partitions than before: keys then belong to other partitions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub partitions: Option<u32>,
    #[command(flatten)]
    pub retention: PubsubRetentionArgs,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
pub struct PubsubTopicDropArgs {
    /// The topic
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Do it: the records cannot be brought back
    #[arg(long, required = true)]
    pub yes: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    seq 1000 | dyno pubsub produce orders\n  \
    dyno pubsub produce orders --key-separator : < pairs.txt\n  \
    printf '{\"key\":\"a\",\"value\":\"1\",\"headers\":{\"from\":\"shop\"}}\\n' | dyno pubsub produce orders --json\n  \
    zcat 2023-01.csv.gz | dyno pubsub produce spots --resume 2023-01 --dsn postgres://log@db/log\n\n\
    A line is acknowledged when its record is on stable storage. Prints how many were; when it is stopped, a line is\n\
    bad, or the log is lost, also how many were not and the line of the first, and exits with 2. With --resume the same\n\
    lines may be sent again after a kill: those that are there are left out, so each is in the topic once.")]
pub struct PubsubProduceArgs {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Split each line at the first of these: key before, value behind
    #[arg(long, value_name = "TEXT", conflicts_with = "json")]
    pub key_separator: Option<String>,
    /// Lines are JSON objects with value, key and headers, as `consume --json` prints them; print JSON
    #[arg(long)]
    pub json: bool,
    /// Leave out the lines that are there of an earlier run of this name with the same lines. Lines without keys go to
    /// the partitions in turn; the number of partitions may not change meanwhile
    #[arg(
        long,
        value_name = "NAME",
        requires = "dsn",
        conflicts_with = "unsafe_async"
    )]
    pub resume: Option<String>,
    /// How long a record waits for others that go with it
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5ms")]
    pub linger: Duration,
    /// Do not wait for stable storage: what was sent last may be lost
    #[arg(long = "async", requires = "dsn")]
    pub unsafe_async: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pubsub consume orders --group billing --from earliest --count 1000\n  \
    dyno pubsub consume orders --group audit --from 2026-11-20T08:00:00Z --json\n  \
    dyno pubsub consume orders --group tail --from latest --until-empty\n\n\
    A record is committed for the group after its line was written: a member that is killed gets the last lines\n\
    again when it comes back, and loses none. Values that are not UTF-8 are {\"base64\": \"...\"} in JSON.")]
pub struct PubsubConsumeArgs {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Members of a group share the partitions
    #[arg(long, value_name = "NAME")]
    pub group: String,
    /// Where a new group starts: earliest, latest, an offset, or a time such as 2026-11-20T08:00:00Z
    #[arg(long, value_name = "WHERE", default_value = "earliest", value_parser = start)]
    pub from: Start,
    /// The member's name; one that comes back with its name has its partitions at once [default: a new one]
    #[arg(long, value_name = "NAME")]
    pub member: Option<String>,
    /// How long others wait for a member that is silent
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub lease: Duration,
    /// Stop after so many records
    #[arg(long, value_name = "N", value_parser = count)]
    pub count: Option<u64>,
    /// Stop when the group has read everything
    #[arg(long)]
    pub until_empty: bool,
    /// Print records as JSON, with partition, offset, time, key and headers
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  dyno pubsub group orders\n  dyno pubsub group orders --group billing --json"
)]
pub struct PubsubGroupArgs {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// One group alone
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
pub struct PubsubStatusArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}
