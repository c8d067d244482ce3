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
    dyno pubsub bench --partitions 4 --writers 10 --consumer-groups 5 --write-batch 100 --read-batch 200 --throttle-writes 5000\n  \
    dyno pubsub bench --way broker --write-batch 1 --window 125\n  \
    dyno pubsub bench --way text-array      the protocol of the original\n  \
    dyno pubsub bench --mode queue --writers 4 --readers 4 --peers\n  \
    dyno pubsub bench --capacity p99=50ms   the highest rate that holds it\n  \
    dyno pubsub bench --nodes 3             commits wait for one of two standbys\n  \
    dyno pubsub bench --dsn postgres://bench@db/postgres --throttle-writes 5000 --duration 1m\n\n\
    Flags are those of the benchmark that started this. Readers are one for each partition of each group, as there.")]
pub struct PubsubBenchArgs {
    /// pubsub: each group reads everything; queue: each message is one reader's
    #[arg(long, value_enum, default_value_t = BenchMode::Pubsub)]
    pub mode: BenchMode,
    /// direct, broker, or a step of the ladder: text-array, binary, lean; of --mode pubsub
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
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub consumer_groups: u64,
    /// Messages written at once [default: 200; of a queue, 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub write_batch: Option<u64>,
    /// Messages read at once [default: 200; of a queue, 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub read_batch: Option<u64>,
    /// Bytes of a message
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1KiB")]
    pub payload: u64,
    /// Messages in all; with --duration and --throttle-writes they follow from those
    #[arg(long, value_name = "N", value_parser = count, default_value = "200000", conflicts_with = "duration")]
    pub messages: u64,
    /// How long to write, under --throttle-writes
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "throttle_writes")]
    pub duration: Option<Duration>,
    /// Messages a second over all writers; 0 as fast as they are acknowledged
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub throttle_writes: u64,
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
