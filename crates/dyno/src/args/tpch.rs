//! `dyno tpch ...` as it is written.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use dyno_tpch_files::{Compression, Format, Mode, SinkKind, Split};

use super::TpchBenchArgs;
use crate::units::{bytes, count, one_or_more};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpch gen --sf 1 --out tpch\n  \
    dyno tpch verify tpch\n  \
    dyno tpch query tpch --q 1,6 --check\n  \
    dyno tpch plan --parts 64 --for slurm --sf 1000 --out /scratch/tpch > tpch.sbatch")]
pub struct TpchArgs {
    #[command(subcommand)]
    pub command: TpchCommand,
}

#[derive(Debug, Subcommand)]
pub enum TpchCommand {
    /// Write tables as Parquet, ORC, CSV or TBL
    Gen(TpchGenArgs),
    /// Check counts, keys and checksums of tables that were written
    Verify(TpchVerifyArgs),
    /// Run the benchmark's 22 queries, and check their published answers
    Query(TpchQueryArgs),
    /// Print a job whose tasks write a part each
    Plan(TpchPlanArgs),
    /// Measure one job, with its record and report
    Bench(TpchBenchArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpch gen --sf 1 --out tpch\n  \
    dyno tpch gen --sf 10 --format orc --compression zstd:3 --tables lineitem,orders --out tpch\n  \
    dyno tpch gen --sf 100 --part 3/16 --out /mnt/tpch\n  \
    dyno tpch gen --sf 1 --format tbl --tables nation --sink stdout\n  \
    dyno tpch gen --sf 1 --column l_comment=zstd:3,plain --out tpch\n\n\
    Files are DIR/lineitem.parquet, and DIR/lineitem/lineitem.3.parquet for part 3. A file appears under\n\
    its name when it is complete and on stable storage. The same command again keeps the files that it\n\
    finished before and writes the rest; a file that it did not write stops it, unless --overwrite.")]
pub struct TpchGenArgs {
    #[command(flatten)]
    pub what: TpchWhatArgs,
    /// Write only one part of several, such as 3/16
    #[arg(long, value_name = "I/N", conflicts_with = "parts")]
    pub part: Option<Split>,
    /// Write all of N parts, a file each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub parts: Option<u64>,
    /// Replace files that are there already
    #[arg(long)]
    pub overwrite: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What is to be written, shared by those who write it and those who plan it.
#[derive(Debug, ClapArgs)]
pub struct TpchWhatArgs {
    /// Scale factor: 1 is about a gigabyte of text
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub sf: f64,
    /// parquet, orc, csv or tbl
    #[arg(long, value_name = "FORMAT", default_value = "parquet")]
    pub format: Format,
    /// Where to write: a directory, made when missing, or s3://bucket/prefix with the AWS_* variables set
    #[arg(long, value_name = "DIR")]
    pub out: Option<String>,
    /// Tables to write, separated by commas [default: all eight]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub tables: Vec<dyno_tpch::Table>,
    /// none, snappy, zstd[:1-22], lz4, or zlib for ORC [default: snappy, for text none]
    #[arg(long, value_name = "CODEC")]
    pub compression: Option<Compression>,
    /// A column's own codec and encoding (auto, plain, dictionary, delta, prefix), in Parquet
    #[arg(long = "column", value_name = "NAME=CHOICE", value_parser = choice)]
    pub columns: Vec<(String, String)>,
    /// Version of Parquet's data pages: 1 or 2
    #[arg(long, value_name = "V", default_value_t = 1)]
    pub page_version: u8,
    /// Rows of a row group or stripe at most
    #[arg(long, value_name = "N", value_parser = count)]
    pub group_rows: Option<u64>,
    /// Bytes of a row group or stripe, about [default: 16MiB, less where memory is short]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub group_bytes: Option<u64>,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub jobs: Option<u64>,
    /// Memory to stay within
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GiB")]
    pub memory: u64,
    /// How rows become pages: baseline, zero-copy or true-zero-copy
    #[arg(long, value_name = "MODE", default_value = "true-zero-copy")]
    pub mode: Mode,
    /// auto, std, direct, uring, null or stdout
    #[arg(long, value_name = "SINK", default_value = "auto")]
    pub sink: SinkKind,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpch verify tpch\n  \
    dyno tpch verify tpch --sf 10 --json\n\n\
    Exits with 1 when a check fails. Reads Parquet, CSV and TBL. ORC tables are refused: the SQL engine does not\n\
    read ORC, so write the same tables as Parquet and verify those. Needs the SQL engine, dyno-sql.")]
pub struct TpchVerifyArgs {
    /// Where the tables are
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// What is passed on to the SQL engine
    #[command(flatten)]
    pub sql: TpchSqlArgs,
    /// The scale factor, where the tables that tell it are missing
    #[arg(long, value_name = "N")]
    pub sf: Option<f64>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpch query tpch\n  \
    dyno tpch query tpch --q 1,6 --format csv\n  \
    dyno tpch query tpch --check     all 22, against the published answers of scale factor 1\n\n\
    With --check it exits with 1 when an answer differs. Reads Parquet, CSV and TBL; ORC tables are refused, because\n\
    the SQL engine does not read ORC. Needs the SQL engine, dyno-sql.")]
pub struct TpchQueryArgs {
    /// Where the tables are
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Queries to run, separated by commas [default: all 22]
    #[arg(long, value_name = "N,M")]
    pub q: Option<String>,
    /// Compare with the published answers, which are those of scale factor 1
    #[arg(long)]
    pub check: bool,
    /// How often to run each
    #[arg(long, value_name = "N")]
    pub repeats: Option<usize>,
    /// table, csv or json
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// What is passed on to the SQL engine
    #[command(flatten)]
    pub sql: TpchSqlArgs,
}

#[derive(Debug, ClapArgs)]
pub struct TpchSqlArgs {
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    dyno tpch plan --parts 64 --for slurm --sf 1000 --out /scratch/tpch > tpch.sbatch\n  \
    dyno tpch plan --parts 16 --for kubernetes --sf 300 --out /data --image dynolab:0.1 --claim data > job.yaml\n  \
    dyno tpch plan --parts 8 --for parallel --sf 100 --out tpch > run.sh\n\n\
    Each task writes one part of every table. A task that was killed may be started again: finished files\n\
    are kept, unfinished ones are made anew, and the bytes are the same.")]
pub struct TpchPlanArgs {
    #[command(flatten)]
    pub what: TpchWhatArgs,
    /// Tasks, a part each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub parts: u64,
    /// Who runs the tasks
    #[arg(long = "for", value_enum, value_name = "SCHEDULER")]
    pub scheduler: Scheduler,
    /// The program as the tasks find it: a name on their PATH, or a path
    #[arg(long, value_name = "PROGRAM", default_value = "dyno")]
    pub dyno: String,
    /// The container image with dyno in it, for kubernetes
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// The volume claim that --out lies on, for kubernetes
    #[arg(long, value_name = "NAME")]
    pub claim: Option<String>,
    /// The Secret with the AWS_* variables, for kubernetes and s3://
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
