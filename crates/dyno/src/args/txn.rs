//! `dyno txn ...` as it is written.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use dyno_rigs::txn::Durability;

use super::database::{Cores, OnArgs, cores};
use super::txn_bench::TxnBenchArgs;
use super::txn_check::{TxnBackupArgs, TxnCheckArgs};
use crate::units::bytes;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn serve --data bank\n  \
    echo 'put accounts ada 700' | dyno txn shell --on dyno://127.0.0.1:7421\n  \
    dyno txn status --on dyno://127.0.0.1:7421")]
pub struct TxnArgs {
    #[command(subcommand)]
    pub command: TxnCommand,
}

#[derive(Debug, Subcommand)]
pub enum TxnCommand {
    /// Run the engine for other processes and hosts
    Serve(TxnServeArgs),
    /// Read and write rows by hand, or from standard input
    Shell(TxnShellArgs),
    /// Show what a database is, its tables and its counters
    Status(TxnStatusArgs),
    /// Copy a database while it runs
    Backup(TxnBackupArgs),
    /// Make a directory out of a backup
    Restore(TxnRestoreArgs),
    /// Simulate clusters and kill servers, and check that every rule holds
    Check(TxnCheckArgs),
    /// Measure, with the parameters of K2's benchmark
    Bench(TxnBenchArgs),
}

/// Where servers listen unless told otherwise.
pub const TXN_DEFAULT: &str = "127.0.0.1:7421";

/// What a server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleArg {
    /// Everything
    All,
    /// Rows alone
    Partitions,
    /// Timestamps alone
    Oracle,
    /// The bytes of others' logs, in memory
    Persist,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn serve --data bank\n  \
    dyno txn serve --data bank --listen 10.0.0.5:7421 --token-file token --tls-cert c.pem --tls-key k.pem\n  \
    dyno txn serve --data bank --cores 2-3 --memory 16GiB --metrics 127.0.0.1:9421\n  \
    dyno txn serve --role oracle --listen 127.0.0.1:7441\n  \
    dyno txn serve --role partitions --part 0/3 --join 127.0.0.1:7441 --data bank-0 --listen 127.0.0.1:7421\n  \
    dyno txn serve --role persist --listen 127.0.0.1:7431 --memory 8GiB\n  \
    dyno txn serve --data bank --durability remote-memory --persist 127.0.0.1:7431,127.0.0.1:7432\n\n\
    Prints where it listens when it is ready. Addresses beyond this machine are refused without a token. Ctrl-C stops it;\n\
    what was acknowledged is on the disk by then, as it is after a kill -9.")]
pub struct TxnServeArgs {
    /// Where rows and logs are, made at the first start; not for --role persist and oracle
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", default_value = TXN_DEFAULT)]
    pub listen: String,
    /// What it does
    #[arg(long, value_enum, default_value = "all")]
    pub role: RoleArg,
    /// Pin one thread to each of these: 1, or 2-9, or 0,2,4 [default: one thread, not pinned]
    #[arg(long, value_name = "LIST", value_parser = cores)]
    pub cores: Option<Cores>,
    /// Partitions of a new directory [default: one for each thread]
    #[arg(long, value_name = "N")]
    pub partitions: Option<u32>,
    /// For --role partitions: which process this is, from 0, of how many
    #[arg(long, value_name = "I/N", value_parser = part)]
    pub part: Option<(u32, u32)>,
    /// For --role partitions: where oracles are, all of them
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub join: Vec<String>,
    /// For --role partitions: where others reach it; needed with --listen 0.0.0.0 [default: where it listens]
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// When it acknowledges: fsync, remote-memory or memory
    #[arg(long, value_name = "MODE", default_value = "fsync")]
    pub durability: Durability,
    /// For remote-memory: processes of --role persist, each of which holds all of the log
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub persist: Vec<String>,
    /// Memory for rows, or for others' logs; beyond it writes are refused
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "4GiB")]
    pub memory: u64,
    /// Checkpoint a partition after its log has grown by this much, and by half the size of its rows
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "512MiB")]
    pub checkpoint: u64,
    /// Let clients have backups made, below this directory
    #[arg(long, value_name = "DIR")]
    pub backups: Option<PathBuf>,
    /// Metrics for Prometheus at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// A file with the token that clients must show [default: what DYNO_TOKEN holds]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate chain
    #[arg(long, value_name = "PEM", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key to it
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Speak TLS with other processes of the database, whose certificates these roots have signed
    #[arg(long, value_name = "PEM")]
    pub tls_ca: Option<PathBuf>,
}

/// `I/N`.
fn part(text: &str) -> Result<(u32, u32), String> {
    let parsed = text
        .split_once('/')
        .and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    parsed
        .filter(|(part, of)| part < of && *of >= 2)
        .ok_or_else(|| format!("`{text}`: it is like 0/3, the first of three processes"))
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn shell --on local:bank\n  \
    printf 'begin\\nput accounts ada 700\\ncommit\\n' | dyno txn shell --on dyno://127.0.0.1:7421\n\n\
    Commands, one a line:\n  \
    create TABLE                 a table of plain bytes\n  \
    tables                       all tables\n  \
    get TABLE KEY                a row\n  \
    put TABLE KEY VALUE          writes a row\n  \
    delete TABLE KEY             removes it\n  \
    scan TABLE [PREFIX] [LIMIT]  rows in order\n  \
    begin, commit, rollback      a transaction over several lines\n  \
    explain TABLE KEY            how a row is spread, and what a look at it costs\n\n\
    Keys and values are taken as UTF-8; other bytes as \\x00. A line outside begin and commit is a transaction of its own.\n\
    Exits 1 when a line failed.")]
pub struct TxnShellArgs {
    #[command(flatten)]
    pub on: OnArgs,
    /// Make the database of local:DIR if it is not there
    #[arg(long)]
    pub create: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn status --on local:bank\n  \
    dyno txn status --on dyno://127.0.0.1:7421 --json")]
pub struct TxnStatusArgs {
    #[command(flatten)]
    pub on: OnArgs,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno txn restore --from backup --data bank\n\n\
    The directory must not exist. The backup is verified first.")]
pub struct TxnRestoreArgs {
    /// The backup
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// The directory to make
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}
