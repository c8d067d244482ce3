//! The flags of `dyno pubsub check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

use crate::units::duration;

/// The interface of the log that the check's clients use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckedWay {
    /// Clients of the library, over SQL
    Direct,
    /// The SQL functions, as any driver calls them
    Sql,
    /// Clients of two brokers
    Broker,
    /// Senders and workers of a queue
    Queue,
    /// Clients of Kafka, over librdkafka
    Kafka,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno pubsub check --kills 5 --seed 1
  dyno pubsub check --kills 500 --seed 7 --way broker --json
  dyno pubsub check --kills 20 --nodes 3
  dyno pubsub check --kills 20 --way kafka --python venv/bin/python
  dyno pubsub check --kills 0 --soak 30m

Servers, brokers and clients are private and live in a temporary directory; a check that fails \
leaves its history there. Each acknowledged record must be in the log once, in order and without \
gaps, and must reach every group; it may be delivered again only as often as the group counts. \
Exits 1 when a rule is broken.")]
pub struct PubsubCheckArgs {
    /// Kill a process, cut a connection, or stop or fill something N times
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub kills: usize,
    /// Derive the faults and their moments from SEED [default: drawn, and printed]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Check clients of WAY
    #[arg(long, aliases = ["on", "clients"], value_name = "WAY", value_enum, default_value_t = CheckedWay::Direct)]
    pub way: CheckedWay,
    /// Use N servers; with 2 or 3, commits wait for one synchronous standby, and the primary is
    /// killed
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=3))]
    pub nodes: u8,
    /// With --way broker or kafka, run N brokers; each is killed, and the others take over
    #[arg(long, value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u8).range(1..=8))]
    pub brokers: u8,
    /// With --way kafka, run clients by this interpreter, which needs the package confluent-kafka
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub python: PathBuf,
    /// Then run for TIME, and judge whether memory, disk, dead rows and latency stay flat
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub soak: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One client of a check, in a process of its own.
#[derive(Debug, ClapArgs)]
pub struct PubsubCheckJobArgs {
    /// Job to do, as JSON
    pub job: String,
}
