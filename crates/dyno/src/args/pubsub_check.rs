//! `dyno pubsub check` as it is written.

use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

use crate::units::duration;

/// What is checked.
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
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pubsub check --kills 5 --seed 1\n  \
    dyno pubsub check --kills 500 --seed 7 --on broker --json\n  \
    dyno pubsub check --kills 20 --nodes 3\n  \
    dyno pubsub check --kills 0 --soak 30m\n\n\
    Servers, brokers and clients are private and live in a temporary directory; a run that fails leaves its history there.\n\
    What was acknowledged must be in the log, once and in order, without gaps, and come to every group; it may come again\n\
    only as often as the group counts. Exits with 1 when a rule is broken.")]
pub struct PubsubCheckArgs {
    /// How many times something is killed, cut, stopped or filled up
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub kills: usize,
    /// Decides what is killed, and when [default: drawn, and printed]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// What is checked
    #[arg(long, value_name = "WAY", value_enum, default_value_t = CheckedWay::Direct)]
    pub on: CheckedWay,
    /// Servers: 1, or 2 and 3 with synchronous standbys, whose primary is killed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub nodes: u8,
    /// Brokers at once, with --on broker; each is killed and taken over by the others
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub brokers: u8,
    /// Go on this long afterwards, and judge whether memory, disk, dead rows and latency stay flat
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub soak: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One client of a check, in a process of its own.
#[derive(Debug, ClapArgs)]
pub struct PubsubCheckJobArgs {
    /// What it is to do, as JSON
    pub job: String,
}
