//! `dyno pubsub bench` as it is written.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

use super::PeersFrom;
use crate::units::{bytes, count, duration, setting};

/// Who gets a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchMode {
    Pubsub,
    Queue,
}

/// A quantile and what it may be at most.
#[derive(Debug, Clone)]
pub struct Bound {
    pub quantile: String,
    pub at_most: Duration,
}

fn bound(text: &str) -> Result<Bound, String> {
    let (quantile, at_most) = setting(text)?;
    if !["p50", "p95", "p99", "p999"].contains(&quantile.as_str()) {
        return Err(format!("`{quantile}` is none of p50, p95, p99, p999"));
    }
    Ok(Bound {
        quantile,
        at_most: duration(&at_most)?,
    })
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pubsub bench --peers\n  \
    dyno pubsub bench --partitions 4 --writers 10 --consumer-groups 5 --write-batch 100 \\\n    \
    --read-batch 200 --throttle-writes 5000\n  \
    dyno pubsub bench --way broker --write-batch 1 --window 125\n  \
    dyno pubsub bench --way text-array      the protocol of the original\n  \
    dyno pubsub bench --cursors relaxed     readers do not wait for the disk\n  \
    dyno pubsub bench --mode queue --writers 4 --readers 4 --peers\n  \
    dyno pubsub bench --capacity p99=50ms   the highest rate that holds it\n  \
    dyno pubsub bench --nodes 3             commits wait for one of two standbys\n  \
    dyno pubsub bench --host db --user bench --db postgres --throttle_writes 5000 --duration 1m\n\n\
    A command line of pg_msg_bench, the benchmark of the third seed document, runs as it stands. Readers are one for each \
    partition of each group, as there. Without --cursors and --window both sides commit every read on stable storage and have \
    one batch of each writer under way.")]
pub struct PubsubBenchArgs {
    /// pubsub: each group reads everything; queue: each message is one reader's
    #[arg(long, value_enum, default_value_t = BenchMode::Pubsub)]
    pub mode: BenchMode,
    /// What is measured, in --mode pubsub: the library on the server (direct) or through a broker; the original's protocol
    /// (text-array), the same with its arrays as bytes (binary), the same without what a log does not need (lean)
    #[arg(long, value_name = "WAY", default_value = "direct")]
    pub way: String,
    /// Writers, dealt to partitions in turn
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub writers: u64,
    /// Partitions
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub partitions: u64,
    /// Readers of each group [default: one for each partition; of a queue, 4]
    #[arg(long, value_name = "N")]
    pub readers: Option<u64>,
    /// Groups, each of which reads everything
    #[arg(long, value_name = "N", default_value_t = 5, alias = "consumer_groups")]
    pub consumer_groups: u64,
    /// Messages written at once [default: 200; of a queue, 1]
    #[arg(long, alias = "write_batch", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub write_batch: Option<u64>,
    /// Messages read at once [default: 200; of a queue, 50]
    #[arg(long, alias = "read_batch", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub read_batch: Option<u64>,
    /// Bytes of a message
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1KiB")]
    pub payload: u64,
    /// Messages in all, in whole batches of each writer
    #[arg(long, value_name = "N", value_parser = count, default_value = "200000", conflicts_with = "duration")]
    pub messages: u64,
    /// How long to write, instead of how much
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Messages a second over all writers; 0 as fast as they are acknowledged
    #[arg(long, value_name = "N", default_value_t = 0, alias = "throttle_writes")]
    pub throttle_writes: u64,
    /// When readers store how far they are: after every poll, on stable storage, or ten times a second without waiting for
    /// the disk [default: every-poll; with --way broker, relaxed]
    #[arg(long, value_name = "HOW", value_parser = ["every-poll", "relaxed"])]
    pub cursors: Option<String>,
    /// Batches of each writer that may be without acknowledgement
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub window: u64,
    /// Find the highest rate at which a quantile of the latency from end to end holds, such as p99=50ms
    #[arg(long, value_name = "QUANTILE=TIME", value_parser = bound,
        conflicts_with_all = ["messages", "duration", "throttle_writes", "window"])]
    pub capacity: Option<Bound>,
    /// How long each rate is tried, with --capacity
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s", requires = "capacity")]
    pub probe: Duration,
    /// Servers: with 2 or 3 commits wait for one synchronous standby
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3))]
    pub nodes: u64,
    /// Measure this PostgreSQL server, on this machine or another, in a database of the run's own; its password is in PGPASSWORD
    #[arg(long, value_name = "DSN", conflicts_with = "nodes")]
    pub dsn: Option<String>,
    /// The server's host or the folder of its socket, instead of --dsn
    #[arg(long, value_name = "HOST", conflicts_with_all = ["dsn", "nodes"])]
    pub host: Option<String>,
    /// Its port, with --host
    #[arg(long, value_name = "PORT", requires = "host")]
    pub port: Option<u16>,
    /// A database that is there, with --host: the run's own is made beside it
    #[arg(long, value_name = "NAME", requires = "host")]
    pub db: Option<String>,
    /// Who connects, with --host
    #[arg(long, value_name = "NAME", requires = "host")]
    pub user: Option<String>,
    /// Its password, with --host; others on this machine may see it here, and not in PGPASSWORD
    #[arg(long, value_name = "TEXT", requires = "host")]
    pub password: Option<String>,
    /// Taken for the command lines of the original; tables here always have their own settings for vacuum
    #[arg(long, hide = true)]
    pub tune_table_vacuum: bool,
    /// Timed invocations of each system
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Run the original's protocol too
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Keep servers and scratch files here [default: ~/.cache/dynolab]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print a line this often while messages flow
    #[arg(long = "report", value_name = "TIME", value_parser = duration, default_value = "5s")]
    pub report_every: Duration,
    /// Write the run below this directory
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print the report as JSON instead of the headline
    #[arg(long)]
    pub json: bool,
}
