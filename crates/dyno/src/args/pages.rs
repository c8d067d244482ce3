//! `dyno pages ...` as it is written.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::PeersFrom;
use crate::units::{count, duration};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pages bench --peers\n  \
    dyno pages check --kills 20")]
pub struct PagesArgs {
    #[command(subcommand)]
    pub command: PagesCommand,
}

#[derive(Debug, Subcommand)]
pub enum PagesCommand {
    /// Measure the store on pages of one class, beside the kernel's zram and tmpfs
    Bench(PagesBenchArgs),
    /// Check the store against a model of it, and kill processes in the middle of their writes
    Check(PagesCheckArgs),
    /// What a process of a check does until it is killed
    #[command(hide = true)]
    CheckJob,
}

/// Pages to measure with; the seed document's names are there too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadArg {
    /// All real classes together
    Real,
    /// Zeros
    #[value(alias = "W1", alias = "w1")]
    Zeros,
    /// A counter over the printable characters
    #[value(alias = "W2", alias = "w2")]
    Text,
    /// Half a counter, half random
    #[value(alias = "W3", alias = "w3")]
    Mixed,
    /// Random bytes
    #[value(alias = "W4", alias = "w4")]
    Random,
    /// Machine code of libraries
    ElfText,
    /// Constants and tables of libraries
    ElfData,
    /// Source text
    Source,
    /// Documentation
    Documents,
    /// The heap of a live interpreter
    Heap,
    /// Tables and indexes of PostgreSQL
    Postgres,
    /// Parquet files
    Parquet,
}

/// How pages are met; the seed document's patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PatternArg {
    /// Read in order, 256 pages a call
    #[value(alias = "P1")]
    P1,
    /// Written in order, 256 pages a call
    #[value(alias = "P2")]
    P2,
    /// Random reads
    #[value(alias = "P3")]
    P3,
    /// Random writes
    #[value(alias = "P4")]
    P4,
    /// Random, 70% reads
    #[value(alias = "P5")]
    P5,
    /// Random, 70% reads, 64 pages a call
    #[value(alias = "P6")]
    P6,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pages bench --peers\n  \
    dyno pages bench --workload heap --pattern p3 --pages 100k --threads 2 --peers\n  \
    dyno pages bench --workload w2 --pattern p4 --batch 64\n\n\
    Workloads w1 to w4 and patterns p1 to p6 are those of the benchmark that started this; its pages were all equal, these are\n\
    distinct. --peers adds zram (root) and a tmpfs, which get the same pages by direct reads and writes, one call at a time.\n\
    All tables: `dyno run pages`.")]
pub struct PagesBenchArgs {
    /// Which pages
    #[arg(long, value_enum, default_value = "real", value_name = "CLASS")]
    pub workload: WorkloadArg,
    /// How they are met
    #[arg(long, value_enum, default_value = "p3")]
    pub pattern: PatternArg,
    /// Pages in the store
    #[arg(long, value_name = "N", value_parser = count, default_value = "24k")]
    pub pages: u64,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: u64,
    /// Pages a call, instead of the pattern's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub batch: Option<u64>,
    /// Times over all pages in one invocation
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub passes: u64,
    /// Timed invocations of each system
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Measure zram and a tmpfs too, where they can be had
    #[arg(long)]
    pub peers: bool,
    #[command(flatten)]
    pub peers_from: PeersFrom,
    /// Keep pages and scratch files here [default: ~/.cache/dynolab]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Write the run below this directory
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Print the report as JSON instead of the headline
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno pages check\n  \
    dyno pages check --kills 100 --steps 1M --share\n  \
    dyno pages check --seed 42 --json\n\n\
    Exits 1 when a rule is broken. The steps follow from the seed; the moments of kills do not.")]
pub struct PagesCheckArgs {
    /// Random steps beside the model
    #[arg(long, value_name = "N", value_parser = count, default_value = "50k")]
    pub steps: u64,
    /// Processes to kill in the middle of their writes
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub kills: u32,
    /// How long the first process lives
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "200ms")]
    pub life: Duration,
    /// Let pages of equal content share slots
    #[arg(long)]
    pub share: bool,
    /// From which the steps follow [default: drawn]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
