//! The flags of `dyno txn ...`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use dyno_txn_node::Durability;

use super::LogArgs;
use super::database::{Cores, GuaranteeArgs, OnArgs, cores};
use super::txn_bench::TxnBenchArgs;
use super::txn_check::{TxnBackupArgs, TxnCheckArgs};
use crate::units::bytes;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn serve --data bank
  echo 'put accounts ada 700' | dyno txn shell --on dyno://127.0.0.1:7421
  dyno txn status --on dyno://127.0.0.1:7421")]
pub struct TxnArgs {
    #[command(subcommand)]
    pub command: TxnCommand,
}

#[derive(Debug, Subcommand)]
pub enum TxnCommand {
    /// Serve a database to other processes and hosts
    Serve(TxnServeArgs),
    /// Read and write rows with commands from standard input
    Shell(TxnShellArgs),
    /// Show the guarantees, tables and counters of a database
    Status(TxnStatusArgs),
    /// Copy a database while it runs
    Backup(TxnBackupArgs),
    /// Make a data directory from a backup
    Restore(TxnRestoreArgs),
    /// Simulate clusters and kill servers, and check the guarantees
    Check(TxnCheckArgs),
    /// Measure transactions, with the parameters of K2's benchmark
    Bench(TxnBenchArgs),
}

/// Where servers listen by default.
pub const TXN_DEFAULT: &str = "127.0.0.1:7421";

/// What a process of a database does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleArg {
    /// Serve rows and timestamps
    All,
    /// Serve only rows
    Partitions,
    /// Serve only timestamps
    Oracle,
    /// Keep the logs of other processes in memory
    Persist,
}

/// A workload whose stored procedures a server can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProceduresArg {
    /// The transactions of `dyno tpcc run --form one-shot`
    Tpcc,
    /// The transactions of `dyno txn check`
    Check,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn serve --data bank
  dyno txn serve --data bank --listen 10.0.0.5:7421 --token-file token \\
    --tls-cert c.pem --tls-key k.pem
  dyno txn serve --data bank --cores 2-3 --memory 16GiB --metrics 127.0.0.1:9421
  dyno txn serve --data cache --resp 127.0.0.1:6380
  dyno txn serve --role oracle --listen 127.0.0.1:7441
  dyno txn serve --role partitions --part 0/3 --join 127.0.0.1:7441 --data bank-0
  dyno txn serve --role persist --listen 127.0.0.1:7431 --memory 8GiB
  dyno txn serve --data bank --durability remote-memory --persist 127.0.0.1:7431,127.0.0.1:7432

Prints its address when it is ready. Addresses beyond this machine are refused without a token, \
which clients of Redis show with AUTH. Ctrl-C stops it; acknowledged transactions are on the disk then, as they are after a kill -9.")]
pub struct TxnServeArgs {
    /// Keep rows and logs in DIR, made at the first start; not for --role persist or oracle
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Listen on HOST:PORT
    #[arg(long, value_name = "HOST:PORT", default_value = TXN_DEFAULT)]
    pub listen: String,
    /// Serve clients of Redis, too, on HOST:PORT; with --role all
    #[arg(long, value_name = "HOST:PORT")]
    pub resp: Option<SocketAddr>,
    /// Do only the work of ROLE
    #[arg(long, value_enum, value_name = "ROLE", default_value = "all")]
    pub role: RoleArg,
    /// Pin one thread to each core of LIST: 1, or 2-9, or 0,2,4 [default: one thread, not pinned]
    #[arg(long, value_name = "LIST", value_parser = cores)]
    pub cores: Option<Cores>,
    /// Split a new database into N partitions [default: one for each thread]
    #[arg(long, value_name = "N")]
    pub partitions: Option<u32>,
    /// With --role partitions: run as process I, counted from 0, of N
    #[arg(long, value_name = "I/N", value_parser = part)]
    pub part: Option<(u32, u32)>,
    /// With --role partitions: use the oracles at these addresses, which must be all of them
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub join: Vec<String>,
    /// With --role partitions: tell others this address; needed with --listen 0.0.0.0 [default:
    /// --listen]
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// Acknowledge a commit after MODE: fsync, remote-memory or memory
    #[arg(long, value_name = "MODE", default_value = "fsync")]
    pub durability: Durability,
    /// With --durability remote-memory: use these processes of --role persist, each of which holds
    /// the whole log
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub persist: Vec<String>,
    /// Use at most SIZE of memory for rows, an equal share for each partition, or for the logs of
    /// others; beyond that refuse writes
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "4GiB")]
    pub memory: u64,
    /// Checkpoint a partition after its log has grown by SIZE, or by half the size of its rows if
    /// that is more
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "512MiB")]
    pub checkpoint: u64,
    /// Let clients call the stored procedures of these workloads
    #[arg(
        long,
        value_enum,
        value_name = "WORKLOAD",
        value_delimiter = ',',
        default_value = "tpcc"
    )]
    pub procedures: Vec<ProceduresArg>,
    /// Let clients make backups below DIR
    #[arg(long, value_name = "DIR")]
    pub backups: Option<PathBuf>,
    /// Serve Prometheus metrics at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Read the token that clients must show from FILE [default: the environment variable
    /// DYNO_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Show clients the certificate chain in PEM
    #[arg(long, value_name = "PEM", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Use the private key in PEM, which belongs to --tls-cert
    #[arg(long, value_name = "PEM", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Speak TLS with other processes of the database, and trust the root certificates in PEM
    #[arg(long, value_name = "PEM")]
    pub tls_ca: Option<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Parses `I/N`: a process, counted from 0, and the number of processes.
fn part(text: &str) -> Result<(u32, u32), String> {
    let parsed = text
        .split_once('/')
        .and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    parsed
        .filter(|(part, of)| part < of && *of >= 2)
        .ok_or_else(|| format!("`{text}`: it is like 0/3, the first of three processes"))
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn shell --on local:bank
  dyno txn shell --on local:bank --create < commands.txt
  printf 'begin\\nput accounts ada 700\\ncommit\\n' | dyno txn shell --on dyno://127.0.0.1:7421

Commands, one a line:
  create TABLE                 create a table of plain bytes, spread by a hash of its keys
  create TABLE range SPLIT...  create one that is spread by ranges, which begin at these keys
  tables                       list the tables
  get TABLE KEY                print a row
  put TABLE KEY VALUE          write a row
  delete TABLE KEY             delete a row
  scan TABLE [PREFIX] [LIMIT]  print rows in order of their keys
  begin, commit, rollback      make several lines one transaction
  explain TABLE KEY            show where a row is stored and what a read of it costs

Keys and values are UTF-8; write other bytes as \\x00. A line outside begin and commit is a \
transaction of its own. Exits 1 when a line failed.")]
pub struct TxnShellArgs {
    #[command(flatten)]
    pub on: OnArgs,
    #[command(flatten)]
    pub guarantees: GuaranteeArgs,
    /// Create the database of local:DIR if it does not exist
    #[arg(long)]
    pub create: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn status --on local:bank
  dyno txn status --on dyno://127.0.0.1:7421 --json")]
pub struct TxnStatusArgs {
    #[command(flatten)]
    pub on: OnArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno txn restore --from backup --data bank
  dyno txn restore --from copies/monday --data bank-again

The directory must be empty or not exist. Every byte is verified. A directory that was not \
finished cannot be opened; remove it and restore again.")]
pub struct TxnRestoreArgs {
    /// Read the backup in DIR
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// Write rows and logs into DIR, which must be empty or not exist
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}
