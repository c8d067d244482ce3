//! The flags of `dyno txn check` and `dyno txn backup`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::database::{GuaranteeArgs, OnArgs};
use crate::units::{bytes, duration};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn check sim --seeds 1000
  dyno txn check kill --rounds 50 --seed 1
  dyno txn check soak --duration 30m
  dyno txn check recovery --log 1GiB --within 10s
  dyno txn check export kills.ndjson --model list-append

Exits 1, and prints the seed, when a rule is broken.")]
pub struct TxnCheckArgs {
    #[command(subcommand)]
    pub command: TxnCheckCommand,
}

#[derive(Debug, Subcommand)]
pub enum TxnCheckCommand {
    /// Simulate clusters with faults, one for each seed
    Sim(TxnCheckSimArgs),
    /// Kill real servers under load, and check that every acknowledged write is there
    Kill(TxnCheckKillArgs),
    /// Run a real server under a steady load, and check that memory, disk and latency stay flat
    Soak(TxnCheckSoakArgs),
    /// Kill a server with a long log, and time its recovery
    Recovery(TxnCheckRecoveryArgs),
    /// Print a history in the form that Elle and other checkers read
    Export(TxnCheckExportArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn check sim --seeds 10000
  dyno txn check sim --seeds 1 --first-seed 4711

Messages are delayed, lost, duplicated and reordered, nodes crash, clocks drift, networks are \
partitioned and oracles fail over. Disks fail, and tear or lose what was not synced. The seed \
decides everything: the same seed repeats the same run, event by event.")]
pub struct TxnCheckSimArgs {
    /// Simulate N seeds
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub seeds: u64,
    /// Begin with SEED
    #[arg(long, alias = "from", value_name = "SEED", default_value_t = 1)]
    pub first_seed: u64,
    /// Write the histories of failed seeds into DIR
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn check kill --rounds 50
  dyno txn check kill --rounds 500 --seed 7 --json
  dyno txn check kill --rounds 20 --history kills.ndjson
  dyno txn check kill --rounds 50 --way resp

Each round starts `dyno txn serve`, lets clients transfer money, append to lists and change \
registers over TCP and shared memory, and kills the server at a random moment; in a third of the \
rounds it is killed again while it recovers. Then everything is read. One history covers all \
rounds; it is kept, with the server's files, when a rule is broken, and written into the file of \
--history in any case.")]
pub struct TxnCheckKillArgs {
    /// Kill the server under load N times
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub rounds: u64,
    /// Derive the moments and the clients' actions from SEED [default: drawn, and printed]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Run N clients
    #[arg(long, value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=256))]
    pub clients: u32,
    /// Check clients of WAY
    #[arg(long, value_name = "WAY", value_enum, default_value_t = CheckedProtocol::Dyno)]
    pub way: CheckedProtocol,
    /// Write what the clients did and saw into FILE, also when every rule holds
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The protocols that clients of a check speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckedProtocol {
    /// Our own, over TCP and shared memory
    Dyno,
    /// Redis' protocol, with WATCH, MULTI and EXEC, which has no scans
    Resp,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn check export kills.ndjson --model list-append > lists.json
  dyno txn check export kills.ndjson --model rw-register --format edn > registers.edn

The file comes from `dyno txn check kill --history` or from a check that found a broken rule. Elle \
judges both models for strict serializability: \
elle-cli --model list-append --format json lists.json. A version of a register is named by the \
transaction that wrote it; registers that were deleted are left out, since Elle has no word for \
them.")]
pub struct TxnCheckExportArgs {
    /// Read the history in FILE
    #[arg(value_name = "FILE")]
    pub history: PathBuf,
    /// Print the lists, or the registers, by Elle's name for its checker of them
    #[arg(long, value_enum, value_name = "NAME", default_value_t = ExportModel::ListAppend)]
    pub model: ExportModel,
    /// Print this form: JSON as elle-cli reads it, or EDN as Jepsen writes it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ExportFormat::ElleJson)]
    pub format: ExportFormat,
}

/// The rows of a history that one of Elle's checkers judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportModel {
    ListAppend,
    RwRegister,
}

/// The languages in which a history is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    ElleJson,
    Edn,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn check soak --duration 30m
  dyno txn check soak --duration 2m --rate 1000 --clients 8 --json

Clients transfer money, append to lists and change registers at a steady rate; the history of each \
minute is judged. Latencies count from the intended start. In a run of ten minutes or more, the \
medians of memory, disk and p99 in the last third must not exceed those in the first third by more \
than a quarter. Exits 1 when a rule is broken or something grew.")]
pub struct TxnCheckSoakArgs {
    /// Run for TIME
    #[arg(long, alias = "for", value_name = "TIME", value_parser = duration, default_value = "30m")]
    pub duration: Duration,
    /// Derive the clients' actions from SEED [default: drawn, and printed]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Run N clients
    #[arg(long, value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=256))]
    pub clients: u32,
    /// Start N transactions a second in all
    #[arg(long, value_name = "N", default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn check recovery --log 1GiB
  dyno txn check recovery --log 1GiB --within 10s --json

Rows of 1,000 bytes are overwritten many times without a checkpoint. Then the server is killed and \
started again, and every row is compared with the last acknowledged one. Exits 1 when a row is \
wrong, or when recovery took longer than --within.")]
pub struct TxnCheckRecoveryArgs {
    /// Write SIZE of log; at most 3GiB, which the log of one partition holds
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub log: u64,
    /// Require that the server listens within TIME of its start
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub within: Option<Duration>,
    /// Derive the rows from SEED
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn serve --data bank --backups copies
  dyno txn backup --on dyno://127.0.0.1:7421 --to monday  # makes copies/monday at the server
  dyno txn backup --on local:bank --to copies/monday      # while no server uses the directory
  dyno txn restore --from copies/monday --data bank2

The backup is a snapshot of one moment; transactions continue meanwhile. `restore` verifies every \
byte of it.")]
pub struct TxnBackupArgs {
    #[command(flatten)]
    pub on: OnArgs,
    #[command(flatten)]
    pub guarantees: GuaranteeArgs,
    /// Write the backup into DIR, which must be empty or not exist; from a server, DIR is a name
    /// below its --backups
    #[arg(long, value_name = "DIR")]
    pub to: String,
}
