//! The flags of `dyno pubsub bench`.

use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

use super::{BenchArgs, CapacityArgs};
use crate::units::{bytes, count, duration};

/// Which readers get a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchMode {
    /// Each group reads every message
    Pubsub,
    /// Each message goes to one reader
    Queue,
}

#[derive(Debug, ClapArgs)]
#[command(
    mut_arg("report_every", |arg| arg.alias("report").default_value("5s")),
    mut_arg("capacity", |arg| {
        arg.conflicts_with_all(["messages", "duration", "throttle_writes", "window"])
    }),
    after_help = "Examples:
  dyno pubsub bench --peers
  dyno pubsub bench --partitions 4 --writers 10 --consumer-groups 5 --throttle-writes 5000
  dyno pubsub bench --way broker --write-batch 1 --window 125
  dyno pubsub bench --way text-array      # the protocol of the original
  dyno pubsub bench --cursors relaxed     # readers do not wait for the disk
  dyno pubsub bench --mode queue --writers 4 --readers 4 --peers
  dyno pubsub bench --capacity p99=50ms   # the highest rate that keeps this bound
  dyno pubsub bench --nodes 3             # commits wait for one of two standbys
  dyno pubsub bench --host db --user bench --db postgres --throttle_writes 5000 --duration 1m

A command line of pg_msg_bench, the benchmark of a published report, runs unchanged: flags with \
underscores and --report are accepted. As there, each partition of each group has one reader. \
Without --cursors and --window, readers commit every read on stable storage, and each writer has \
one batch without acknowledgement. A verdict about a rate needs 20 s of measured time in each \
invocation: add --duration 20s."
)]
pub struct PubsubBenchArgs {
    /// Deliver messages as MODE
    #[arg(long, value_enum, value_name = "MODE", default_value_t = BenchMode::Pubsub)]
    pub mode: BenchMode,
    /// With --mode pubsub, measure WAY: the library on the server (direct) or through a broker
    /// (broker); the protocol of the original (text-array), the same with binary arrays (binary),
    /// or without what a log does not need (lean)
    #[arg(long, value_name = "WAY", default_value = "direct")]
    pub way: String,
    /// Use N writers, assigned to the partitions in turn
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub writers: u64,
    /// Use N partitions
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub partitions: u64,
    /// Use N readers in each group [default: one for each partition; 4 of a queue]
    #[arg(long, value_name = "N")]
    pub readers: Option<u64>,
    /// Use N consumer groups, each of which reads everything
    #[arg(long, value_name = "N", default_value_t = 5, alias = "consumer_groups")]
    pub consumer_groups: u64,
    /// Write N messages at once [default: 200; 1 into a queue]
    #[arg(long, alias = "write_batch", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub write_batch: Option<u64>,
    /// Read N messages at once [default: 200; 50 from a queue]
    #[arg(long, alias = "read_batch", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub read_batch: Option<u64>,
    /// With --mode queue, let readers that find fewer messages wait TIME for more
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10ms")]
    pub linger: Duration,
    /// Write messages of SIZE
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1KiB")]
    pub payload: u64,
    /// Write N messages in all, in whole batches of each writer
    #[arg(long, value_name = "N", value_parser = count, default_value = "200000",
        conflicts_with = "duration")]
    pub messages: u64,
    /// Run each invocation for TIME [default: until --messages are written]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Write N messages a second in all; 0 is as fast as they are acknowledged
    #[arg(long, value_name = "N", default_value_t = 0, alias = "throttle_writes")]
    pub throttle_writes: u64,
    /// Let readers store their position after every read on stable storage (every-poll), or ten
    /// times a second without waiting for the disk (relaxed) [default: every-poll; relaxed with
    /// --way broker]
    #[arg(long, value_name = "HOW", value_parser = ["every-poll", "relaxed"])]
    pub cursors: Option<String>,
    /// Let each writer have N batches without acknowledgement
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub window: u64,
    #[command(flatten)]
    pub search: CapacityArgs,
    /// Use N servers; with 2 or 3, commits wait for one synchronous standby
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=3))]
    pub nodes: u64,
    /// Measure the PostgreSQL server at DSN, in a new database; set the password in PGPASSWORD
    #[arg(long, value_name = "DSN", conflicts_with = "nodes")]
    pub dsn: Option<String>,
    /// Measure the PostgreSQL server at HOST, a name or the directory of its socket
    #[arg(long, value_name = "HOST", conflicts_with_all = ["dsn", "nodes"])]
    pub host: Option<String>,
    /// With --host, connect to PORT
    #[arg(long, value_name = "PORT", requires = "host")]
    pub port: Option<u16>,
    /// With --host, connect to the existing database NAME, beside which a new one is made
    #[arg(long, value_name = "NAME", requires = "host")]
    pub db: Option<String>,
    /// With --host, connect as NAME
    #[arg(long, value_name = "NAME", requires = "host")]
    pub user: Option<String>,
    /// With --host, log in with password TEXT; other users of this machine can see it, so prefer
    /// PGPASSWORD
    #[arg(long, value_name = "TEXT", requires = "host")]
    pub password: Option<String>,
    /// Accepted for command lines of the original; tables here always have own vacuum settings
    #[arg(long, hide = true)]
    pub tune_table_vacuum: bool,
    #[command(flatten)]
    pub bench: BenchArgs,
}
