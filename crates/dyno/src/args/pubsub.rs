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
    /// Show groups and how far they are behind; set them to another place, delete them
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
    dyno pubsub serve --dsn postgres://log@db/log --listen 10.0.0.5:7411 \\\n    \
    --token-file token --tls-cert c.pem --tls-key k.pem\n\n\
    Prints where it listens when it is ready, and how to reach its server without it. Addresses beyond this machine are refused \
    without a token. Ctrl-C finishes what was accepted. The database at --dsn needs the schema: `dyno pubsub install`.")]
#[command(group(clap::ArgGroup::new("server").required(true).args(["data", "dsn"])))]
pub struct PubsubServeArgs {
    /// Keep a private PostgreSQL server here, made at the first start
    #[arg(long, value_name = "DIR")]
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
    psql app -c \"SELECT pubsub.create_topic('orders')\"\n  \
    psql app -c \"SELECT pubsub.send('orders', 'hello', key => 'customer-7')\"\n\n\
    The schema belongs to the role that installs it; docs/pubsub.md says what other roles are granted. An older version is \
    brought up to this one; then start brokers and programs with the new one too.")]
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
    /// Keep records this long, or up to an eighth longer; `0s` for ever
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub retention: Option<Duration>,
    /// Keep about this much in a partition: its oldest eighth (256 KiB at least) goes when it has more; 0 without limit
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub retention_bytes: Option<u64>,
    /// Records in a table at most, which retention drops as a whole [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(100..))]
    pub range_records: Option<i64>,
    /// Keep what a group has not read yet, even beyond that
    #[arg(long, value_name = "true|false")]
    pub retain_for_groups: Option<bool>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pubsub topic create orders --partitions 4\n  \
    dyno pubsub topic create clicks --partitions 16 --retention 168h --compression zstd\n  \
    dyno pubsub topic create wide --partitions 8 \\\n    \
    --dsn 'host=/run/a dbname=log' --on 'b=host=/run/b dbname=log'\n\n\
    A broker applies retention every few seconds; without one, call SELECT * FROM pubsub.maintain() now and then.")]
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
    /// several times. It holds no password: docs/pubsub.md says where those come from
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
    printf '{\"value\":\"1\",\"headers\":{\"from\":\"shop\"}}\\n' | dyno pubsub produce orders --json\n  \
    zcat 2023-01.csv.gz | dyno pubsub produce spots --resume 2023-01 \\\n    \
    --dsn postgres://log@db/log\n\n\
    A line is acknowledged when its record is on stable storage. Prints how many were; when it is stopped, a line is bad, or \
    the log is lost, also how many were not, and exits with 2. Lines without a key go to one partition as long as a batch \
    takes more of them, and then to the next.\n\n\
    With --resume the same lines may be sent again after a kill: those that are there are left out, so each is in the topic \
    once. Other lines under the same name are refused.")]
pub struct PubsubProduceArgs {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Split each line at the first of these: key before, value behind
    #[arg(long, value_name = "TEXT", conflicts_with = "json")]
    pub key_separator: Option<String>,
    /// Lines are JSON objects with value, key, headers and partition, as `consume --json` prints them; print JSON
    #[arg(long)]
    pub json: bool,
    /// Send all records to this partition, whatever their keys
    #[arg(long, value_name = "N")]
    pub partition: Option<u32>,
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
    A record is committed for the group after its line was written: a member that is killed gets the last lines again when it \
    comes back, and loses none. Values that are not UTF-8 are {\"base64\": \"...\"} in JSON.")]
pub struct PubsubConsumeArgs {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Members of a group share the partitions
    #[arg(long, value_name = "NAME")]
    pub group: String,
    /// Where a new group starts: earliest, latest, an offset, or a time such as 2026-11-20T08:00:00Z. One that is there
    /// goes on where it is: see `dyno pubsub group reset`
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
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    dyno pubsub group\n  \
    dyno pubsub group orders --group billing --json\n  \
    dyno pubsub group reset orders --group billing --to earliest\n  \
    dyno pubsub group delete orders --group billing\n\n\
    `redelivered` is an upper bound: a member that is lost had claimed records in advance, and which of them it had handled is \
    not known."
)]
pub struct PubsubGroupArgs {
    #[command(subcommand)]
    pub command: Option<PubsubGroupCommand>,
    /// The topic; all groups of all topics without
    #[arg(value_name = "TOPIC")]
    pub topic: Option<String>,
    /// One group alone
    #[arg(long, value_name = "NAME", requires = "topic")]
    pub group: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, Subcommand)]
pub enum PubsubGroupCommand {
    /// Set a group to another place
    Reset(PubsubGroupResetArgs),
    /// Delete a group with its cursors
    Delete(PubsubGroupDeleteArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pubsub group reset orders --group billing --to earliest\n  \
    dyno pubsub group reset orders --group billing --to 1000 --partition 0\n  \
    dyno pubsub group reset orders --group billing --to 2026-11-20T08:00:00Z --force\n\n\
    A group with living members is refused unless it is forced; then they go on from the new place.")]
pub struct PubsubGroupResetArgs {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// The group
    #[arg(long, value_name = "NAME")]
    pub group: String,
    /// Where to: earliest, latest, an offset, or a time such as 2026-11-20T08:00:00Z
    #[arg(long, value_name = "WHERE", value_parser = start)]
    pub to: Start,
    /// One partition alone
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub partition: Option<i32>,
    /// Also where members live
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
pub struct PubsubGroupDeleteArgs {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// The group
    #[arg(long, value_name = "NAME")]
    pub group: String,
    /// Also where members live
    #[arg(long)]
    pub force: bool,
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
