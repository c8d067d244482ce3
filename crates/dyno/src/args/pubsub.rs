//! The flags of `dyno pubsub ...`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args as ClapArgs, Subcommand};
use dyno_pubsub::record::Codec;
use dyno_pubsub::{NamedCluster, Partitioner, Start};

use super::log_start::start;
use super::{LogArgs, PubsubBenchArgs, PubsubCheckArgs, PubsubCheckJobArgs, PubsubQueueArgs};
use crate::units::{bytes, count, duration};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub serve --data log
  dyno pubsub topic create orders --partitions 4
  seq 1000 | sed 's/.*/customer-&:&/' | dyno pubsub produce orders --key-separator :
  dyno pubsub consume orders --group billing --from earliest --count 1000
  dyno pubsub status

Commands talk to the broker at --broker, or with --dsn directly to PostgreSQL.")]
pub struct PubsubArgs {
    #[command(subcommand)]
    pub command: PubsubCommand,
}

#[derive(Debug, Subcommand)]
pub enum PubsubCommand {
    /// Run a broker, on a private PostgreSQL server or on yours
    Serve(PubsubServeArgs),
    /// Install the schema and its SQL functions in a database, or upgrade them
    Install(PubsubInstallArgs),
    /// Create, alter, drop and list topics
    Topic(PubsubTopicArgs),
    /// Send each line of standard input as a record
    Produce(PubsubProduceArgs),
    /// Print records, in a consumer group or without one
    Consume(PubsubConsumeArgs),
    /// Show groups and their lag; reset or delete a group
    Group(PubsubGroupArgs),
    /// Send, claim and acknowledge the messages of a queue
    Queue(PubsubQueueArgs),
    /// Show topics, partitions, queues, sizes and brokers
    #[command(after_help = "Examples:
  dyno pubsub status
  dyno pubsub status --dsn postgres://log@db/log --json")]
    Status(PubsubStatusArgs),
    /// Kill servers, brokers and clients under load, and check that nothing is lost or duplicated
    Check(PubsubCheckArgs),
    /// Measure a flow of messages; accepts the flags of pg_msg_bench
    Bench(PubsubBenchArgs),
    /// Run one client of a check
    #[command(hide = true)]
    CheckJob(PubsubCheckJobArgs),
}

/// How to reach the log.
#[derive(Debug, Clone, ClapArgs)]
pub struct PubsubPlaceArgs {
    /// Use the broker at ADDRESS: HOST:PORT or unix:PATH [default: 127.0.0.1:7411]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "dsn")]
    pub broker: Option<String>,
    /// Use the PostgreSQL server at DSN, without a broker: postgres://... or key=value
    #[arg(long, value_name = "DSN")]
    pub dsn: Option<String>,
    /// Read the token from FILE [default: the environment variable DYNO_TOKEN]
    #[arg(long, value_name = "FILE", conflicts_with = "dsn")]
    pub token_file: Option<PathBuf>,
    /// Speak TLS, and trust the root certificates in PEM
    #[arg(long, value_name = "PEM", conflicts_with = "dsn")]
    pub tls_ca: Option<PathBuf>,
}

/// Where brokers listen by default.
pub const BROKER_DEFAULT: &str = "127.0.0.1:7411";

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub serve --data log
  dyno pubsub serve --data log --listen unix:/run/dyno/log.sock --memory 1GiB
  dyno pubsub serve --data log --kafka 127.0.0.1:9092
  dyno pubsub serve --dsn postgres://log@db/log --listen 10.0.0.5:7411 \\
    --token-file token --tls-cert c.pem --tls-key k.pem

Prints its address when it is ready, and how to reach its PostgreSQL server directly. Addresses \
beyond this machine are refused without a token, which Kafka's clients show as the password of \
SASL/PLAIN. Ctrl-C stops it after the accepted records are stored. The database at --dsn needs \
the schema: `dyno pubsub install`.")]
#[command(group(clap::ArgGroup::new("server").required(true).args(["data", "dsn"])))]
pub struct PubsubServeArgs {
    /// Keep a private PostgreSQL server in DIR; made at the first start
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Use the PostgreSQL server at DSN
    #[arg(long, value_name = "DSN")]
    pub dsn: Option<String>,
    /// Listen on ADDRESS: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS", default_value = BROKER_DEFAULT)]
    pub listen: String,
    /// Serve clients of Kafka, too, on HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    pub kafka: Option<String>,
    /// Tell clients of Kafka to connect to HOST:PORT [default: where --kafka listens]
    #[arg(long, value_name = "HOST:PORT", requires = "kafka")]
    pub kafka_advertise: Option<String>,
    /// Create topics that clients of Kafka ask for, with N partitions [default: they are refused]
    #[arg(long, value_name = "N", requires = "kafka",
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub kafka_create_topics: Option<u32>,
    /// Serve Prometheus metrics at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
    /// Use at most SIZE of memory for queues and for recently written records
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "256MiB")]
    pub memory: u64,
    /// Let an append wait TIME for more records; with 0s only while another append runs
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    pub linger: Duration,
    /// Give a broker's partitions to others when it was silent for TIME
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s")]
    pub lease: Duration,
    /// Run PostgreSQL as the system user USER when root starts it [default: postgres]
    #[arg(long, value_name = "USER", conflicts_with = "dsn")]
    pub pg_user: Option<String>,
    /// Read the token that clients must show from FILE
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Show clients the certificate chain in PEM, on TCP and for metrics
    #[arg(long, value_name = "PEM", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Use the private key in PEM, which belongs to --tls-cert
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub install --dsn postgres://postgres@localhost/app
  dyno pubsub install --dsn 'host=/run/postgresql user=log dbname=log' --json
  psql app -c \"SELECT pubsub.create_topic('orders')\"
  psql app -c \"SELECT pubsub.send('orders', 'hello', key => 'customer-7')\"

The schema belongs to the role that installs it; docs/pubsub.md says what other roles are granted. \
An older version is upgraded; then upgrade brokers and programs too.")]
pub struct PubsubInstallArgs {
    /// Use the PostgreSQL server at DSN
    #[arg(long, value_name = "DSN")]
    pub dsn: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub topic create orders --partitions 4
  dyno pubsub topic list")]
pub struct PubsubTopicArgs {
    #[command(subcommand)]
    pub command: PubsubTopicCommand,
}

#[derive(Debug, Subcommand)]
pub enum PubsubTopicCommand {
    /// Create a topic
    Create(PubsubTopicCreateArgs),
    /// Add partitions to a topic, or change its retention
    Alter(PubsubTopicAlterArgs),
    /// Drop a topic with its records
    Drop(PubsubTopicDropArgs),
    /// List topics
    #[command(after_help = "Examples:
  dyno pubsub topic list
  dyno pubsub topic list --json")]
    List(PubsubStatusArgs),
}

/// How long records are kept, and how many.
#[derive(Debug, Clone, ClapArgs)]
pub struct PubsubRetentionArgs {
    /// Keep records for TIME, or up to an eighth longer; 0s keeps them forever
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub retention: Option<Duration>,
    /// Keep about SIZE in each partition: when it has more, its oldest eighth, at least 256KiB, is
    /// removed; 0 sets no limit
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub retention_bytes: Option<u64>,
    /// Put at most N records into a table, which retention drops as a whole [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(100..))]
    pub range_records: Option<i64>,
    /// Keep what a group has not read yet, beyond the retention
    #[arg(long, value_name = "true|false")]
    pub retain_for_groups: Option<bool>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub topic create orders --partitions 4
  dyno pubsub topic create clicks --partitions 16 --retention 168h --compression zstd
  dyno pubsub topic create shared --partitions 4 --partitioner murmur2
  dyno pubsub topic create wide --partitions 8 \\
    --dsn 'host=/run/a dbname=log' --add-cluster 'b=host=/run/b dbname=log'

A broker applies retention once a minute; without a broker, call SELECT * FROM \
pubsub.maintain() from time to time.")]
pub struct PubsubTopicCreateArgs {
    /// Name of the topic: letters, digits, dot, underscore and hyphen
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Split the topic into N partitions; records with the same key go to the same one, in order
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub partitions: u32,
    /// Let clients compress batches with CODEC: none, lz4 or zstd; SQL can read only none
    #[arg(long, value_name = "CODEC", default_value = "none", value_parser = Codec::named)]
    pub compression: Codec,
    /// Choose the partition of a key by HASH: fnv1a, or murmur2 as clients of Kafka do; it cannot
    /// be changed later
    #[arg(long, value_name = "HASH", default_value = "fnv1a", value_parser = Partitioner::named)]
    pub partitioner: Partitioner,
    /// Assign partitions in turn to this cluster too, beside the one at --dsn, which stays the home
    /// of the topic; repeatable. Leave out the password: docs/pubsub.md says where it comes from
    #[arg(long, alias = "on", value_name = "CLUSTER=DSN", requires = "dsn", value_parser = cluster)]
    pub add_cluster: Vec<NamedCluster>,
    #[command(flatten)]
    pub retention: PubsubRetentionArgs,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

/// Parses the name of a cluster and its connection string.
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
#[command(after_help = "Examples:
  dyno pubsub topic alter orders --partitions 8
  dyno pubsub topic alter orders --retention 24h --retain-for-groups true")]
pub struct PubsubTopicAlterArgs {
    /// Name of the topic
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Grow the topic to N partitions; keys then belong to other partitions than before
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub partitions: Option<u32>,
    #[command(flatten)]
    pub retention: PubsubRetentionArgs,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub topic drop orders --yes
  dyno pubsub topic drop orders --yes --dsn postgres://log@db/log")]
pub struct PubsubTopicDropArgs {
    /// Name of the topic
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Confirm that the records are to be deleted for good
    #[arg(long, required = true)]
    pub yes: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  seq 1000 | dyno pubsub produce orders
  dyno pubsub produce orders --key-separator : < pairs.txt
  dyno pubsub produce orders --partition 0 --header from=shop < pairs.txt
  printf '{\"value\":\"1\",\"headers\":{\"from\":\"shop\"}}\\n' | dyno pubsub produce orders --json
  zcat 2023-01.csv.gz | dyno pubsub produce spots --resume 2023-01 \\
    --dsn postgres://log@db/log

A line is acknowledged when its record is on stable storage. The command prints how many lines \
were acknowledged. If it is stopped, reads a bad line or loses the log, it also prints how many \
were not, and exits 2. Lines without a key fill a batch of one partition, then of the next.

With --resume, send the same lines again after a crash: lines that are in the topic are left out, \
so each is there once. Other lines under the same name are refused.")]
pub struct PubsubProduceArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Split each line at the first TEXT into a key and a value
    #[arg(long, value_name = "TEXT", conflicts_with = "json",
        value_parser = NonEmptyStringValueParser::new())]
    pub key_separator: Option<String>,
    /// Read and print JSON; a line is an object with value, key, headers and partition, as `consume
    /// --json` prints it
    #[arg(long)]
    pub json: bool,
    /// Add the header NAME with VALUE to every record; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// Send all records to partition N, whatever their keys
    #[arg(long, value_name = "N")]
    pub partition: Option<u32>,
    /// Leave out the lines that an earlier run with the same NAME and the same lines stored. Lines
    /// without keys go to the partitions in turn; do not change the number of partitions meanwhile
    #[arg(
        long,
        value_name = "NAME",
        requires = "dsn",
        conflicts_with = "unsafe_async"
    )]
    pub resume: Option<String>,
    /// Let a record wait TIME for others of its batch
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5ms")]
    pub linger: Duration,
    /// Do not wait for stable storage; the records sent last may be lost
    #[arg(long = "async", requires = "dsn")]
    pub unsafe_async: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub consume orders --group billing --from earliest --count 1000
  dyno pubsub consume orders --group audit --from 2026-11-20T08:00:00Z --json
  dyno pubsub consume orders --partition 0 --last 10 --until-empty
  dyno pubsub consume orders --from latest --key-separator :

With --group a record is committed for the group after its line was written, so a member that is \
killed may get its last lines again but loses none. Without it nothing is stored in the log. Values \
that are not UTF-8 are {\"base64\": \"...\"} in JSON.")]
pub struct PubsubConsumeArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Join the group NAME, whose members share the partitions [default: read all partitions,
    /// and leave no group behind]
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Start at POSITION: earliest, latest, an offset, a time such as 2026-11-20T08:00:00Z, or
    /// time:N in microseconds since 1970. A group that exists continues where it is; `dyno pubsub
    /// group reset` moves it
    #[arg(long, value_name = "POSITION", default_value = "earliest", value_parser = start)]
    pub from: Start,
    /// Start N records before the end of each partition
    #[arg(long, value_name = "N", value_parser = count, conflicts_with_all = ["group", "from"])]
    pub last: Option<u64>,
    /// Read the partition N alone
    #[arg(long, value_name = "N", conflicts_with = "group")]
    pub partition: Option<i32>,
    /// Join as the member NAME; a member that returns has its partitions at once. Two processes
    /// that run at the same time must not share a name: both would read the same partitions
    /// [default: a new name]
    #[arg(long, value_name = "NAME", requires = "group")]
    pub member: Option<String>,
    /// Give a member's partitions to others when it was silent for TIME
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s", requires = "group")]
    pub lease: Duration,
    /// Stop after N records
    #[arg(long, value_name = "N", value_parser = count)]
    pub count: Option<u64>,
    /// Stop when the group has read everything; without a group, when everything is read that was
    /// there at the start
    #[arg(long)]
    pub until_empty: bool,
    /// Print the key and TEXT before each value; a record without a key begins with TEXT
    #[arg(long, value_name = "TEXT", conflicts_with = "json")]
    pub key_separator: Option<String>,
    /// Print records as JSON, with partition, offset, time, key and headers
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

/// Parses a header of a record. Its value may be empty and may have equals signs.
fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!(
            "`{text}` is not of the form NAME=VALUE, such as from=shop"
        )),
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  dyno pubsub group
  dyno pubsub group orders --group billing --json
  dyno pubsub group reset orders --group billing --to earliest
  dyno pubsub group delete orders --group billing

`redelivered` is an upper bound, because it is not known which of its claimed records a lost \
member had handled."
)]
pub struct PubsubGroupArgs {
    #[command(subcommand)]
    pub command: Option<PubsubGroupCommand>,
    /// Show the groups of this topic [default: of all topics]
    #[arg(value_name = "TOPIC")]
    pub topic: Option<String>,
    /// Show only the group NAME
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
    /// Move a group to another position
    Reset(PubsubGroupResetArgs),
    /// Delete a group and its positions
    Delete(PubsubGroupDeleteArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub group reset orders --group billing --to earliest
  dyno pubsub group reset orders --group billing --to 1000 --partition 0
  dyno pubsub group reset orders --group billing --to 2026-11-20T08:00:00Z --force

A group with live members is refused without --force; with it they continue from the new \
position.")]
pub struct PubsubGroupResetArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Name of the group
    #[arg(long, value_name = "NAME")]
    pub group: String,
    /// Move to POSITION: earliest, latest, an offset, a time such as 2026-11-20T08:00:00Z, or
    /// time:N in microseconds since 1970
    #[arg(long, value_name = "POSITION", value_parser = start)]
    pub to: Start,
    /// Move only partition N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub partition: Option<i32>,
    /// Proceed although the group has live members
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PubsubPlaceArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub group delete orders --group billing
  dyno pubsub group delete orders --group billing --force")]
pub struct PubsubGroupDeleteArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Name of the group
    #[arg(long, value_name = "NAME")]
    pub group: String,
    /// Proceed although the group has live members
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
