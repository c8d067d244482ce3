//! The flags of `dyno tpch ...`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use dyno_tpch_files::{Compression, Format, Mode, SinkKind, Split};

use super::{Catalog, TpchBenchArgs};
use crate::units::{bytes, count, one_or_more};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno tpch gen --sf 1 --out tpch
  dyno tpch verify tpch
  dyno tpch query tpch --q 1,6 --check
  dyno tpch plan --parts 64 --scheduler slurm --sf 1000 --out /scratch/tpch > tpch.sbatch")]
pub struct TpchArgs {
    #[command(subcommand)]
    pub command: TpchCommand,
}

#[derive(Debug, Subcommand)]
pub enum TpchCommand {
    /// Write tables as Parquet, ORC, CSV or TBL
    Gen(TpchGenArgs),
    /// Check counts, keys and checksums of written tables
    Verify(TpchVerifyArgs),
    /// Run the benchmark's 22 queries, and check them against the published answers
    Query(TpchQueryArgs),
    /// Print a job for a scheduler whose tasks each write one part
    Plan(TpchPlanArgs),
    /// Measure one job, with a record and a report
    Bench(TpchBenchArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno tpch gen --sf 1 --out tpch
  dyno tpch gen --sf 10 --format orc --compression zstd:3 --tables lineitem,orders --out tpch
  dyno tpch gen --sf 100 --part 3/16 --out /mnt/tpch
  dyno tpch gen --sf 1 --format tbl --tables nation --sink stdout
  dyno tpch gen --sf 1 --column l_comment=zstd:3,plain --out tpch
  dyno tpch gen --sf 1 --out tpch --catalog iceberg

Files are DIR/lineitem.parquet, or DIR/lineitem/lineitem.3.parquet for part 3. A file gets its \
name when it is complete and on stable storage. Run the same command again to continue: it keeps \
the files that it finished before. It stops at a file that it did not write, unless --overwrite is \
given.")]
pub struct TpchGenArgs {
    #[command(flatten)]
    pub what: TpchWhatArgs,
    /// Write only part I of N, such as 3/16
    #[arg(long, value_name = "I/N", conflicts_with = "parts")]
    pub part: Option<Split>,
    /// Write N parts of each table, a file each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub parts: Option<u64>,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    /// Describe each table in CATALOG too
    #[arg(long, value_enum, value_name = "CATALOG")]
    pub catalog: Option<Catalog>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What to write; shared by `gen`, which writes it, and `plan`, which prints a job.
#[derive(Debug, ClapArgs)]
pub struct TpchWhatArgs {
    /// Write tables of scale factor N; 1 is about a gigabyte of text
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub sf: f64,
    /// Write FORMAT: parquet, orc, csv or tbl
    #[arg(long, value_name = "FORMAT", default_value = "parquet")]
    pub format: Format,
    /// Write the files into DIR, made when missing, or to s3://bucket/prefix with the AWS_*
    /// variables set
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<String>,
    /// Write only these tables, separated by commas [default: all eight]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub tables: Vec<dyno_tpch::Table>,
    /// Compress with CODEC: none, snappy, zstd[:1-22], lz4, or zlib for ORC [default: snappy; none
    /// for csv and tbl]
    #[arg(long, value_name = "CODEC")]
    pub compression: Option<Compression>,
    /// Give a Parquet column a codec and an encoding (auto, plain, dictionary, delta, prefix);
    /// repeatable
    #[arg(long = "column", value_name = "NAME=CHOICE", value_parser = choice)]
    pub columns: Vec<(String, String)>,
    /// Write version V of Parquet's data pages: 1 or 2
    #[arg(long, value_name = "V", default_value_t = 1)]
    pub page_version: u8,
    /// Write at most N rows to a row group or stripe
    #[arg(long, value_name = "N", value_parser = count)]
    pub group_rows: Option<u64>,
    /// Write about SIZE to a row group or stripe [default: 16MiB, or less to fit --memory]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub group_bytes: Option<u64>,
    /// Use N threads [default: all]
    #[arg(long, alias = "jobs", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub threads: Option<u64>,
    /// Use at most SIZE of memory
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub memory: u64,
    /// Turn rows into pages by MODE: baseline, zero-copy or true-zero-copy
    #[arg(long, value_name = "MODE", default_value = "true-zero-copy")]
    pub mode: Mode,
    /// Write through SINK: auto, std, direct, uring, null or stdout
    #[arg(long, value_name = "SINK", default_value = "auto")]
    pub sink: SinkKind,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno tpch verify tpch
  dyno tpch verify tpch --sf 10 --json

Exits 1 when a check fails. Needs the SQL engine, dyno-sql. Reads Parquet, ORC, CSV \
and TBL.")]
pub struct TpchVerifyArgs {
    /// Directory of the tables
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The flags that are passed on to the SQL engine
    #[command(flatten)]
    pub sql: TpchSqlArgs,
    /// Expect scale factor N [default: read from the tables]
    #[arg(long, value_name = "N")]
    pub sf: Option<f64>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno tpch query tpch
  dyno tpch query tpch --q 1,6 --format csv
  dyno tpch query tpch --check     # all 22, against the published answers of scale factor 1

With --check it exits 1 when an answer differs. Needs the SQL engine, dyno-sql. Reads Parquet, ORC, \
CSV and TBL.")]
pub struct TpchQueryArgs {
    /// Directory of the tables
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Run only these queries, separated by commas [default: all 22]
    #[arg(long, value_name = "N,M")]
    pub q: Option<String>,
    /// Compare with the published answers of scale factor 1
    #[arg(long)]
    pub check: bool,
    /// Time each query N times
    #[arg(long, value_name = "N")]
    pub repeats: Option<usize>,
    /// Print the answer as FORMAT: table, csv or json
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// The flags that are passed on to the SQL engine
    #[command(flatten)]
    pub sql: TpchSqlArgs,
}

#[derive(Debug, ClapArgs)]
pub struct TpchSqlArgs {
    /// Use N threads [default: all]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno tpch plan --parts 64 --scheduler slurm --sf 1000 --out /scratch/tpch > tpch.sbatch
  dyno tpch plan --parts 8 --scheduler parallel --sf 100 --out tpch > run.sh
  dyno tpch plan --parts 16 --scheduler kubernetes --sf 300 --out /data \\
    --image dynolab:0.1 --claim data > job.yaml

Each task writes one part of every table. A task that was killed may be started again: it keeps \
finished files and writes the others, with the same bytes.")]
pub struct TpchPlanArgs {
    #[command(flatten)]
    pub what: TpchWhatArgs,
    /// Print a job of N tasks, each of which writes one part
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub parts: u64,
    /// Print the job for SCHEDULER
    #[arg(long, alias = "for", value_enum, value_name = "SCHEDULER")]
    pub scheduler: Scheduler,
    /// Let the tasks run PROGRAM, a path or a name on their PATH
    #[arg(long, value_name = "PROGRAM", default_value = "dyno")]
    pub dyno: String,
    /// For kubernetes: use this container image, which has dyno in it
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// For kubernetes: use the volume claim NAME, which --out lies on
    #[arg(long, value_name = "NAME")]
    pub claim: Option<String>,
    /// For kubernetes and s3://: read the AWS_* variables from the Secret NAME
    #[arg(long, value_name = "NAME")]
    pub secret: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scheduler {
    /// A job array for sbatch
    Slurm,
    /// An indexed Job for kubectl apply
    Kubernetes,
    /// A script for GNU parallel
    Parallel,
}

fn choice(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((column, choice)) if !column.is_empty() && !choice.is_empty() => {
            Ok((column.to_string(), choice.to_string()))
        }
        _ => Err(format!(
            "`{text}` is not NAME=CHOICE, such as l_comment=zstd:3,plain"
        )),
    }
}
