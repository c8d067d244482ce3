//! The command line as the user writes it. Commands turn it into checked values once.

mod ab;
mod bench;
mod beside;
mod compare;
mod database;
mod feeds;
mod history;
mod ingest;
mod ingest_serve;
mod log;
mod log_start;
mod pages;
mod pages_pager;
mod pubsub;
mod pubsub_bench;
mod pubsub_check;
mod pubsub_queue;
mod records;
mod tpcc;
mod tpch;
mod tpch_bench;
mod txn;
mod txn_bench;
mod txn_check;
mod watch;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use dyno_record::Size;

use crate::units::{bytes, duration, setting, time_above_zero};

pub use ab::AbArgs;
pub use bench::{BenchArgs, CapacityArgs};
pub use beside::{BesideArgs, BesideLoad};
pub use compare::{CompareArgs, GateArgs, ReproduceArgs};
pub use database::{GuaranteeArgs, OnArgs};
pub use feeds::{CollectArgs, FetchArgs};
pub use history::{
    HistoryAddArgs, HistoryArgs, HistoryCommand, HistoryExport, HistoryFormat, HistoryNoteArgs,
    HistoryShowArgs,
};
pub use ingest::{
    AskArgs, FeaturesArgs, GenerateArgs, Inflate, IngestArgs, IngestBenchArgs, IngestCommand,
    LoadArgs, LoadSource, QueryArgs, ServerLoadArgs, StatusArgs, TableFormat,
};
pub use ingest_serve::IngestServeArgs;
pub use log::{LogArgs, LogFormat, LogLevel};
pub use pages::{
    CodecArg, FrontArg, PagesArgs, PagesAskArgs, PagesAttachArgs, PagesBenchArgs, PagesCheckArgs,
    PagesCommand, PagesDeviceArgs, PagesHoldArgs, PagesListArgs, PagesNameArgs, PagesServeArgs,
    PagesStatusArgs, PagesStoreArgs, PagesWritebackArgs, PatternArg, WriteBackArg,
};
pub use pages_pager::PagesPagerArgs;
pub use pubsub::{
    BROKER_DEFAULT, PubsubArgs, PubsubCommand, PubsubConsumeArgs, PubsubGroupArgs,
    PubsubGroupCommand, PubsubGroupResetArgs, PubsubInstallArgs, PubsubPlaceArgs,
    PubsubProduceArgs, PubsubRetentionArgs, PubsubServeArgs, PubsubStatusArgs,
    PubsubTopicAlterArgs, PubsubTopicArgs, PubsubTopicCommand, PubsubTopicCreateArgs,
};
pub use pubsub_bench::{BenchMode, PubsubBenchArgs};
pub use pubsub_check::{CheckedWay, PubsubCheckArgs, PubsubCheckJobArgs};
pub use pubsub_queue::{
    PubsubQueueArgs, PubsubQueueCommand, PubsubQueueCreateArgs, PubsubQueueDeadArgs,
    PubsubQueueNameArgs, PubsubQueueSendArgs,
};
pub use records::{ClaimsArgs, Format, LintArgs, RankArgs, ReportArgs, SelfcheckArgs, SiteArgs};
pub use tpcc::{FormArg, MixArg, TpccArgs, TpccCheckArgs, TpccCommand, TpccLoadArgs, TpccRunArgs};
pub use tpch::{
    Scheduler, TpchArgs, TpchCommand, TpchGenArgs, TpchPlanArgs, TpchQueryArgs, TpchSqlArgs,
    TpchVerifyArgs, TpchWhatArgs,
};
pub use tpch_bench::TpchBenchArgs;
pub use txn::{
    ProceduresArg, RoleArg, TxnArgs, TxnCommand, TxnRestoreArgs, TxnServeArgs, TxnShellArgs,
    TxnStatusArgs,
};
pub use txn_bench::{KeysArg, TransportArg, TxnBenchArgs};
pub use txn_check::{
    CheckedProtocol, ExportFormat, ExportModel, TxnBackupArgs, TxnCheckArgs, TxnCheckCommand,
    TxnCheckExportArgs, TxnCheckKillArgs, TxnCheckRecoveryArgs, TxnCheckSimArgs, TxnCheckSoakArgs,
};
pub use watch::WatchArgs;

/// The catalogues whose metadata can be written beside Parquet files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Catalog {
    /// Iceberg, format version 2, read by the path of the table
    Iceberg,
}

/// Five data engines, and the lab that measures how close they come to the machine's limits
#[derive(Debug, Parser)]
#[command(
    name = "dyno",
    version,
    after_help = "Examples:
  dyno doctor                      # what will spoil a measurement here
  dyno plan                        # the suites, each with its purpose
  dyno run wspr --quick --peers    # measure, beside DuckDB and chDB
  dyno report                      # print the latest run
  dyno ingest --help               # radio spots into a table
  dyno tpch gen --sf 1 --out tpch  # TPC-H as Parquet, ORC, CSV or TBL
  dyno pubsub serve --data log     # a log with topics, partitions and groups
  dyno txn serve --data bank       # strictly serializable transactions
  dyno pages bench --peers         # compressed pages in memory, beside zram

Exit codes: 0 done, 1 the answer is no, 2 misuse or failure, 3 not enough evidence, \
130 stopped by Ctrl-C."
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Describe this machine and list what will spoil a measurement
    Doctor(DoctorArgs),
    /// Measure what this machine can do
    Limits(LimitsArgs),
    /// Answer link tests of `dyno limits --link` from other machines
    Serve(ServeArgs),
    /// List suites and their cases: what a run would do, how long it takes and what it needs
    #[command(visible_alias = "suites")]
    Plan(PlanArgs),
    /// Run suites and write their records and reports
    Run(RunArgs),
    /// Print the report of a run
    Report(ReportArgs),
    /// Check the figures of a run, or of another program's report
    Lint(LintArgs),
    /// Measure how good the linter and the verdicts are
    Selfcheck(SelfcheckArgs),
    /// Compare runs: did anything become slower?
    Compare(CompareArgs),
    /// Let a change pass only if it made nothing slower
    Gate(GateArgs),
    /// Run one case of a record again: does it come out the same?
    Reproduce(ReproduceArgs),
    /// Compare two commands of your own, interleaved and with a verdict
    Ab(AbArgs),
    /// Hold the figures of a document against the records that they come from
    Claims(ClaimsArgs),
    /// Show figures over many runs, with the changes in them
    History(HistoryArgs),
    /// Rank the systems of each case over several records
    Rank(RankArgs),
    /// Write a static site from all records below a directory
    Site(SiteArgs),
    /// List, install and verify the programs that dyno is measured against
    Peers(PeersArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages into a directory
    Man(ManArgs),
    /// Load radio spots into a table and query it
    Ingest(IngestArgs),
    /// Write, verify and query the tables of TPC-H
    Tpch(TpchArgs),
    /// Keep records in a log on PostgreSQL: topics, partitions, consumer groups
    Pubsub(PubsubArgs),
    /// Keep rows in a strictly serializable transactional store
    Txn(TxnArgs),
    /// Run the transactions of TPC-C on any engine
    Tpcc(TpccArgs),
    /// Keep pages compressed in memory
    Pages(PagesArgs),
    /// Run one workload as a child of the lab
    #[command(hide = true)]
    Rig(RigArgs),
    /// Keep a part of the machine busy, as a load beside the lab's samples
    #[command(hide = true)]
    Beside(BesideArgs),
    /// Write the documents of a checkout that are made from the commands and the records
    #[command(hide = true)]
    Documents(DocumentsArgs),
}

#[derive(Debug, ClapArgs)]
pub struct DocumentsArgs {
    /// Root of the checkout
    #[arg(value_name = "TREE")]
    pub tree: PathBuf,
    /// Write nothing, and exit 1 when a document is not up to date
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, ClapArgs)]
pub struct RigArgs {
    /// Speak another program's protocol, under that peer's name
    #[arg(long, value_name = "PEER")]
    pub speak_as: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno doctor
  dyno doctor --data-dir /mnt/nvme --json
  dyno doctor --noise
  dyno doctor --engine pubsub
  dyno doctor --engine pubsub --dsn postgres://postgres@localhost/app

Exits 1 when something here will spoil a measurement; \
with --dsn, when acknowledged records are at risk.")]
pub struct DoctorArgs {
    /// Advise on what ENGINE needs instead, such as PostgreSQL's settings for pubsub
    #[arg(long, alias = "for", value_name = "ENGINE", value_enum)]
    pub engine: Option<AdvisedEngine>,
    /// Compare the PostgreSQL server at DSN with the advice
    #[arg(long, value_name = "DSN", requires = "engine")]
    pub dsn: Option<String>,
    /// Measure in half a minute by how much one program differs from itself here
    #[arg(long, conflicts_with = "engine")]
    pub noise: bool,
    /// Check the disk that DIR is on
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Engines that the doctor has advice for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AdvisedEngine {
    /// PostgreSQL's settings for a log
    Pubsub,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno limits
  dyno limits --full --json > limits.json
  dyno limits --link 10.0.0.5:7499 --token-file token

A link test needs `dyno serve --link` on the other machine. It measures the round trip of 64 bytes, \
and bytes each second in both directions by one connection and by four.")]
pub struct LimitsArgs {
    #[command(flatten)]
    pub size: SizeArgs,
    /// Measure the disk that DIR is on
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Measure only the link to the machine on which `dyno serve --link` listens
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "data_dir")]
    pub link: Option<String>,
    /// Read the token that the server asks for from FILE
    #[arg(long, value_name = "FILE", requires = "link")]
    pub token_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Where `dyno serve --link` listens by default.
pub const LINK_DEFAULT: &str = "127.0.0.1:7499";

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno serve --link
  dyno serve --link 0.0.0.0:7499 --token-file token

Prints its address when it is ready. An address beyond this machine is refused without a token. It \
takes 16 connections at once, each for a minute at most. Ctrl-C stops it.")]
pub struct ServeArgs {
    /// Answer link tests on HOST:PORT [default: 127.0.0.1:7499]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, required = true,
        default_missing_value = LINK_DEFAULT)]
    pub link: SocketAddr,
    /// Read the token that clients must show from FILE
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
}

/// How much to do; quick by default.
#[derive(Debug, Clone, ClapArgs)]
#[command(group(ArgGroup::new("size").args(["tiny", "quick", "full"])))]
pub struct SizeArgs {
    /// Run the quick size, which takes minutes; this is the default
    #[arg(long)]
    pub quick: bool,
    /// Run the full size, which takes up to hours
    #[arg(long)]
    pub full: bool,
    /// Run the tiny size: shows that everything works, and measures nothing
    #[arg(long)]
    pub tiny: bool,
}

impl SizeArgs {
    pub fn size(&self) -> Size {
        match (self.tiny, self.full) {
            (true, _) => Size::Tiny,
            (_, true) => Size::Full,
            _ => Size::Quick,
        }
    }
}

/// The suites, the peers, and the directories they come from.
#[derive(Debug, ClapArgs)]
pub struct SelectArgs {
    /// Name of a suite, path of a suite file, or `seeds` for all suites that make the tables of a
    /// published report again; without one, list the suites
    #[arg(value_name = "SUITE")]
    pub suites: Vec<String>,
    #[command(flatten)]
    pub size: SizeArgs,
    /// Set a parameter of the suite, such as sf=10 or workers=1,2,cores; parameters derived from it
    /// change too
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Run only the cases that match PATTERN, such as `load-*`, also those that the size leaves
    /// out; give it again for more [default: those of the size]
    #[arg(long, value_name = "PATTERN")]
    pub case: Vec<String>,
    /// Leave out the cases that match PATTERN; give it again for more
    #[arg(long, value_name = "PATTERN")]
    pub skip: Vec<String>,
    /// Measure the peers too, and name those that are not installed
    #[arg(long)]
    pub peers: bool,
    /// Read suites from DIR [default: those built in]
    #[arg(long, value_name = "DIR")]
    pub suites_dir: Option<PathBuf>,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Keep prepared data and scratch files in DIR [default: ~/.cache/dynolab]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Refuse a run that needs more disk than SIZE, such as 20GB [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub max_disk: Option<u64>,
}

/// The directory in which peers are declared, for commands that use some.
#[derive(Debug, Clone, ClapArgs)]
pub struct PeersFrom {
    /// Read peers from DIR [default: those built in]
    #[arg(long, value_name = "DIR")]
    pub peers_dir: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno plan
  dyno plan wspr --full --peers
  dyno plan seeds --json

Without a suite it lists the suites. Exits 1 when a run would not fit the disk.")]
pub struct PlanArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno run wspr --quick
  dyno run wspr --case 'load-*' --skip '*-2'
  dyno run tpch --full --set sf=10 --peers
  dyno run seeds --full --peers --out results
  dyno run wspr --beside memory
  dyno run wspr --case load-gz-2 --why
  dyno run wspr --case load-gz-2 --peers --flamegraph
  dyno run --resume runs/tpcc-20261125T101500Z
  dyno run wspr --case load-gz-2 --beside 'stress-ng --vm 1' --report-every 30s")]
pub struct RunArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    /// Continue the interrupted run in directory RUN; its suite, size and settings are those of
    /// then
    #[arg(long, value_name = "RUN", conflicts_with_all = ["suites", "tiny", "quick", "full", "set", "case", "skip", "peers", "beside", "out"])]
    pub resume: Option<PathBuf>,
    /// Run every system a second time in each block, beside LOAD: cpu, memory, disk, or a shell
    /// command that runs until it is killed
    #[arg(long, value_name = "LOAD")]
    pub beside: Option<String>,
    /// Find out what bounds each case: run it again in each block with one resource taken away or
    /// doubled at a time, in place of its variants
    #[arg(long, conflicts_with = "beside")]
    pub why: bool,
    /// Run every system of each case once more under `perf`, and show in the report where its
    /// processor time goes
    #[arg(long)]
    pub flamegraph: bool,
    /// Print a line every TIME when no progress bar is shown
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub report_every: Duration,
    /// Print no progress: failures and the result alone
    #[arg(short, long, conflicts_with = "report_every")]
    pub quiet: bool,
    /// Start no further block after TIME [default: the suite's budget]
    #[arg(long, value_name = "TIME", value_parser = time_above_zero)]
    pub budget: Option<Duration>,
    /// Measure the machine's limits again, although recent ones are known
    #[arg(long)]
    pub measure_limits: bool,
    /// Write each run below DIR
    #[arg(short, long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print each report as JSON instead of the headline
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno peers list
  dyno peers install duckdb chdb
  dyno peers verify")]
pub struct PeersArgs {
    #[command(subcommand)]
    pub command: PeersCommand,
}

#[derive(Debug, Subcommand)]
pub enum PeersCommand {
    /// List the peers and whether they are installed
    #[command(after_help = "Examples:
  dyno peers list
  dyno peers list --json")]
    List {
        #[command(flatten)]
        from: PeersFrom,
        /// Print JSON, with the licence and the homepage of each peer
        #[arg(long)]
        json: bool,
    },
    /// Install peers, each into an environment of its own
    #[command(after_help = "Examples:
  dyno peers install
  dyno peers install duckdb chdb")]
    Install {
        /// Peers to install [default: all]
        #[arg(value_name = "PEER")]
        names: Vec<String>,
        #[command(flatten)]
        from: PeersFrom,
    },
    /// Start each installed peer and check that it is the declared version
    #[command(after_help = "Examples:
  dyno peers verify
  dyno peers verify duckdb")]
    Verify {
        /// Peers to verify [default: all installed]
        #[arg(value_name = "PEER")]
        names: Vec<String>,
        #[command(flatten)]
        from: PeersFrom,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno completions bash > /etc/bash_completion.d/dyno
  dyno completions fish > ~/.config/fish/completions/dyno.fish")]
pub struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno man /usr/local/share/man/man1
  dyno man man && man -l man/dyno-run.1")]
pub struct ManArgs {
    /// Directory to write to; made when missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
