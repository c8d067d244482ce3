//! The command line as it is written; commands turn it into checked values once.

mod database;
mod feeds;
mod ingest;
mod pages;
mod pubsub;
mod pubsub_bench;
mod pubsub_check;
mod tpcc;
mod tpch;
mod tpch_bench;
mod txn;
mod txn_bench;
mod txn_check;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use dyno_record::Size;

use crate::units::{bytes, duration, setting, share, time_above_zero};

pub use database::OnArgs;
pub use feeds::{CollectArgs, FetchArgs};
pub use ingest::{
    AskArgs, BenchArgs, GenerateArgs, Inflate, IngestArgs, IngestCommand, LoadArgs, LoadSource,
    QueryArgs, ServerLoadArgs, StatusArgs,
};
pub use pages::{
    CodecArg, FrontArg, PagesArgs, PagesAskArgs, PagesAttachArgs, PagesBenchArgs, PagesCheckArgs,
    PagesCommand, PagesDeviceArgs, PagesListArgs, PagesNameArgs, PagesServeArgs, PagesStatusArgs,
    PagesStoreArgs, PagesWritebackArgs, PatternArg, WriteBackArg,
};
pub use pubsub::{
    BROKER_DEFAULT, PubsubArgs, PubsubCommand, PubsubConsumeArgs, PubsubGroupArgs,
    PubsubGroupCommand, PubsubGroupResetArgs, PubsubInstallArgs, PubsubPlaceArgs,
    PubsubProduceArgs, PubsubRetentionArgs, PubsubServeArgs, PubsubStatusArgs,
    PubsubTopicAlterArgs, PubsubTopicArgs, PubsubTopicCommand, PubsubTopicCreateArgs,
};
pub use pubsub_bench::{BenchMode, PubsubBenchArgs};
pub use pubsub_check::{CheckedWay, PubsubCheckArgs, PubsubCheckJobArgs};
pub use tpcc::{FormArg, MixArg, TpccArgs, TpccCheckArgs, TpccCommand, TpccLoadArgs, TpccRunArgs};
pub use tpch::{
    Scheduler, TpchArgs, TpchCommand, TpchGenArgs, TpchPlanArgs, TpchQueryArgs, TpchSqlArgs,
    TpchVerifyArgs, TpchWhatArgs,
};
pub use tpch_bench::TpchBenchArgs;
pub use txn::{
    RoleArg, TxnArgs, TxnCommand, TxnRestoreArgs, TxnServeArgs, TxnShellArgs, TxnStatusArgs,
};
pub use txn_bench::{CarrierArg, KeysArg, TxnBenchArgs};
pub use txn_check::{
    TxnBackupArgs, TxnCheckArgs, TxnCheckCommand, TxnCheckKillArgs, TxnCheckRecoveryArgs,
    TxnCheckSimArgs, TxnCheckSoakArgs,
};
pub use watch::WatchArgs;

/// Data engines close to the limit of the machine, and the lab that proves it.
#[derive(Debug, Parser)]
#[command(
    name = "dyno",
    version,
    after_help = "Examples:\n  \
        dyno doctor                     what will spoil a measurement here\n  \
        dyno run wspr --quick --peers   measure, beside DuckDB and chDB\n  \
        dyno report                     print the latest run\n  \
        dyno ingest --help              spot archives into a table\n  \
        dyno tpch gen --sf 1 --out tpch TPC-H as Parquet, ORC, CSV or TBL\n  \
        dyno pubsub serve --data log    a log with topics, partitions and groups\n  \
        dyno txn serve --data bank      strictly serializable transactions\n  \
        dyno pages bench --peers        compressed pages in memory, beside zram\n\n\
        Exit codes: 0 done, 1 the answer is no, 2 misuse or failure, 3 not enough evidence, 130 stopped by Ctrl-C."
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what this machine is and what will spoil a measurement
    Doctor(DoctorArgs),
    /// Measure what this machine can do
    Limits(LimitsArgs),
    /// Show what a run would do, how long it takes and what it needs
    Plan(PlanArgs),
    /// Run suites and write their records and reports
    Run(RunArgs),
    /// Print the report of a run
    Report(ReportArgs),
    /// Check the figures of a run, or of somebody else's report
    Lint(LintArgs),
    /// Set two runs side by side: did it become slower?
    Compare(CompareArgs),
    /// Write a site of static pages from all records below a directory
    Site(SiteArgs),
    /// List, install and verify the programs that are measured beside ours
    Peers(PeersArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages into a directory
    Man(ManArgs),
    /// Load archives of radio spots into a table and ask it questions
    Ingest(IngestArgs),
    /// Write the tables of TPC-H, verify them and query them
    Tpch(TpchArgs),
    /// Keep records in a log on PostgreSQL: topics, partitions, groups of consumers
    Pubsub(PubsubArgs),
    /// Keep rows in strictly serializable transactions
    Txn(TxnArgs),
    /// Run the transactions of TPC-C on any engine
    Tpcc(TpccArgs),
    /// Keep pages compressed in memory
    Pages(PagesArgs),
    /// Run one workload as a child of the lab
    #[command(hide = true)]
    Rig(RigArgs),
    /// Write the documents of a checkout that are made from the commands and the records
    #[command(hide = true)]
    Documents(DocumentsArgs),
}

#[derive(Debug, ClapArgs)]
pub struct DocumentsArgs {
    /// The checkout
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
#[command(after_help = "Examples:\n  \
    dyno doctor\n  \
    dyno doctor --data-dir /mnt/nvme --json\n  \
    dyno doctor --for pubsub\n  \
    dyno doctor --for pubsub --dsn postgres://postgres@localhost/app\n\n\
    Exits 1 when something will spoil a measurement; with --dsn, when acknowledged records are at risk.")]
pub struct DoctorArgs {
    /// Advise on what an engine needs instead: settings of PostgreSQL for pubsub
    #[arg(long = "for", value_name = "ENGINE", value_enum)]
    pub engine: Option<AdvisedEngine>,
    /// Compare this PostgreSQL server with the advice
    #[arg(long, value_name = "DSN", requires = "engine")]
    pub dsn: Option<String>,
    /// Where the data will live; its disk is looked at
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
#[command(after_help = "Examples:\n  dyno limits\n  dyno limits --full --json > limits.json")]
pub struct LimitsArgs {
    #[command(flatten)]
    pub size: SizeArgs,
    /// Measure the disk that this directory is on
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How much to do; quick unless told otherwise.
#[derive(Debug, Clone, ClapArgs)]
#[command(group(ArgGroup::new("size").args(["tiny", "quick", "full"])))]
pub struct SizeArgs {
    /// Minutes, which is the default
    #[arg(long)]
    pub quick: bool,
    /// The figures that are published; tens of minutes
    #[arg(long)]
    pub full: bool,
    /// Seconds: shows that everything works and measures nothing
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

/// Which suites, with whom, from where.
#[derive(Debug, ClapArgs)]
pub struct SelectArgs {
    /// Names of suites, paths of suite files, or `seeds` for all that make a seed document's tables
    #[arg(value_name = "SUITE", required = true)]
    pub suites: Vec<String>,
    #[command(flatten)]
    pub size: SizeArgs,
    /// Set a parameter of the suite, such as sf=10; parameters that the suite derives from it change too
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Run this case alone, and others that are named so [default: all of the suite]
    #[arg(long, value_name = "NAME")]
    pub case: Vec<String>,
    /// Run the peers too; those not installed are named
    #[arg(long)]
    pub peers: bool,
    /// Take suites from this directory instead of those built in
    #[arg(long, value_name = "DIR")]
    pub suites_dir: Option<PathBuf>,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Keep prepared data and scratch files here [default: ~/.cache/dynolab]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Refuse a run that needs more disk than this, such as 20GB [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub max_disk: Option<u64>,
}

/// Where peers are declared.
#[derive(Debug, Clone, ClapArgs)]
pub struct PeersFrom {
    /// Take peers from this directory instead of those built in
    #[arg(long, value_name = "DIR")]
    pub peers_dir: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  dyno plan wspr --full --peers\n  dyno plan seeds --json")]
pub struct PlanArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno run wspr --quick\n  \
    dyno run tpch --full --set sf=10 --peers\n  \
    dyno run seeds --full --peers --out results\n  \
    dyno run wspr --beside 'stress-ng --vm 1' --report-every 30s")]
pub struct RunArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    /// Keep this command running beside every sample
    #[arg(long, value_name = "CMD")]
    pub beside: Option<String>,
    /// Print a line this often when no progress bar is shown
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub report_every: Duration,
    /// Start no further block after this much time [default: the suite's budget]
    #[arg(long, value_name = "TIME", value_parser = time_above_zero)]
    pub budget: Option<Duration>,
    /// Measure the machine's limits anew, however young the known ones are
    #[arg(long)]
    pub limits: bool,
    /// Write runs below this directory
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print each report as JSON instead of the headline
    #[arg(long)]
    pub json: bool,
    /// The command that the record names, where it is another than this one
    #[arg(skip)]
    pub command: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Markdown
    Md,
    /// One file that works offline
    Html,
    /// Excel workbook with charts
    Xlsx,
    /// Figures and findings
    Json,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno report\n  \
    dyno report runs/wspr-20261120T101500Z --format html > report.html\n  \
    dyno report --format xlsx > report.xlsx")]
pub struct ReportArgs {
    /// A run, or a directory of runs, of which the latest is taken
    #[arg(value_name = "RUN", default_value = "runs")]
    pub run: PathBuf,
    /// What to print
    #[arg(long, value_enum, default_value = "md")]
    pub format: Format,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno site results --out public\n  \
    dyno site runs --out my-site\n\n\
Open index.html in a browser; the pages need no server and no network.\n\
Exits 1 when a record has no page because it cannot be read, 2 when no record can be read.")]
pub struct SiteArgs {
    /// Read the records below this directory, at any depth
    #[arg(value_name = "RECORDS", default_value = "results")]
    pub records: PathBuf,
    /// Write the pages into this directory, over an earlier site
    #[arg(long, value_name = "DIR", default_value = "public")]
    pub out: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  dyno lint runs\n  dyno lint somebody-elses-figures.toml\n\n\
    Exits 1 when a figure cannot be right."
)]
pub struct LintArgs {
    /// A run, a directory of runs, or a file of figures (*.toml)
    #[arg(value_name = "RUN|FIGURES.toml", default_value = "runs")]
    pub what: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  dyno compare before after --max-slowdown 3%\n\n\
    Exits 0 when no regression is shown, 1 when one is, 3 when the samples cannot tell."
)]
pub struct CompareArgs {
    /// The older run
    #[arg(value_name = "BASE")]
    pub base: PathBuf,
    /// The newer run
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// A slowdown that is still accepted, such as 3%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_slowdown: Option<f64>,
    /// Judge also when machine, size or build differ
    #[arg(long)]
    pub across: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  dyno peers list\n  dyno peers install duckdb chdb\n  dyno peers verify"
)]
pub struct PeersArgs {
    #[command(subcommand)]
    pub command: PeersCommand,
}

#[derive(Debug, Subcommand)]
pub enum PeersCommand {
    /// Say which peers there are and which are installed
    List {
        #[command(flatten)]
        from: PeersFrom,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Install peers, each into an environment of its own
    Install {
        /// Peers to install [default: all]
        #[arg(value_name = "PEER")]
        names: Vec<String>,
        #[command(flatten)]
        from: PeersFrom,
    },
    /// Start each installed peer and check that it is the declared version
    Verify {
        /// Peers to verify [default: all installed]
        #[arg(value_name = "PEER")]
        names: Vec<String>,
        #[command(flatten)]
        from: PeersFrom,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  dyno completions bash > /etc/bash_completion.d/dyno")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  dyno man /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Where to write them; made when missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
