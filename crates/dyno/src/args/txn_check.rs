//! `dyno txn check` and `dyno txn backup` as they are written.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::database::OnArgs;
use crate::units::{bytes, duration};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn check sim --seeds 1000\n  \
    dyno txn check kill --rounds 50 --seed 1\n  \
    dyno txn check soak --for 30m\n  \
    dyno txn check recovery --log 1GiB --within 10s\n\n\
    Exits 1, with the seed, when a rule is broken.")]
pub struct TxnCheckArgs {
    #[command(subcommand)]
    pub command: TxnCheckCommand,
}

#[derive(Debug, Subcommand)]
pub enum TxnCheckCommand {
    /// Run whole clusters in a simulated world with faults, one for each seed
    Sim(TxnCheckSimArgs),
    /// Kill real servers under load, and see whether all that they answered is there
    Kill(TxnCheckKillArgs),
    /// Watch a real server under a steady load: memory, disk and latency must stay flat
    Soak(TxnCheckSoakArgs),
    /// Kill a server with a long log, and time how it comes back
    Recovery(TxnCheckRecoveryArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn check sim --seeds 10000\n  \
    dyno txn check sim --seeds 1 --from 4711\n\n\
    Messages are late, lost, repeated and out of order, nodes crash, clocks go wrong, networks are cut, oracles fail over;\n\
    below the engine's own log disks fail, and tear and lose what was not synced. Everything is decided by the seed: a\n\
    seed alone repeats its run, event by event.")]
pub struct TxnCheckSimArgs {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub seeds: u64,
    /// The first
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub from: u64,
    /// Where histories of seeds that fail are put
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn check kill --rounds 50\n  \
    dyno txn check kill --rounds 500 --seed 7 --json\n\n\
    Each round starts `dyno txn serve`, lets clients move money, append to lists and change registers over TCP and shared\n\
    memory, and kills it at a random moment; in a third of the rounds a second time while it recovers. Then everything is\n\
    read. One history goes over all rounds; it stays, with the server's files, when a rule is broken.")]
pub struct TxnCheckKillArgs {
    /// How often the server is killed under load
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub rounds: u64,
    /// Decides when, and what clients do [default: drawn, and printed]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Clients at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub clients: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn check soak --for 30m\n  \
    dyno txn check soak --for 2m --rate 1000 --clients 8 --json\n\n\
    Clients move money, append to lists and change registers at a steady pace; each minute's history is judged. Latencies\n\
    count from when a transaction was due. From ten minutes on the medians of memory, disk and p99 in the last third must\n\
    not be above those in the first by more than a quarter. Exits 1 when a rule is broken, or something grew.")]
pub struct TxnCheckSoakArgs {
    /// How long
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "30m")]
    pub length: Duration,
    /// Decides what clients do [default: drawn, and printed]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Clients at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub clients: u32,
    /// Transactions a second of all clients
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn check recovery --log 1GiB\n  \
    dyno txn check recovery --log 1GiB --within 10s --json\n\n\
    Rows of 1,000 bytes are written again and again, without a checkpoint; then the server is killed and started again, and\n\
    every row is compared with what was answered. Exits 1 when a row is wrong, or it took longer than --within.")]
pub struct TxnCheckRecoveryArgs {
    /// How much is written; at most 3GiB, which one partition's log holds
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub log: u64,
    /// From the start of the process until it listens, at most
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub within: Option<Duration>,
    /// Decides what rows hold
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn serve --data bank --backups copies\n  \
    dyno txn backup --on dyno://127.0.0.1:7421 --to monday     makes copies/monday at the server\n  \
    dyno txn backup --on local:bank --to copies/monday         when no server runs on it\n  \
    dyno txn restore --from copies/monday --data bank2\n\n\
    The copy is of one moment; transactions go on meanwhile. `restore` verifies every byte of it.")]
pub struct TxnBackupArgs {
    #[command(flatten)]
    pub on: OnArgs,
    /// A directory that is empty or not there; of a server a name below its --backups
    #[arg(long, value_name = "DIR")]
    pub to: String,
}
