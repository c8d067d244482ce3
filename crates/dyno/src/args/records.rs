//! Arguments of the commands that read records and run nothing.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Markdown
    #[value(alias = "markdown")]
    Md,
    /// One file that works offline
    Html,
    /// Excel workbook with charts
    Xlsx,
    /// Figures and findings
    Json,
    /// Every metric of every invocation, one a line
    Csv,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno report
  dyno report runs/wspr-20261120T101500Z --format html > report.html
  dyno report --format xlsx > report.xlsx

On a terminal and without --format it prints the headline; otherwise the whole report.")]
pub struct ReportArgs {
    /// Run, or directory of runs, of which the latest is printed
    #[arg(value_name = "RUN", default_value = "runs")]
    pub run: PathBuf,
    /// Print the whole report as FORMAT [default: md]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Print JSON, as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print the JSON Schema of records and of reports as JSON instead, and read no run
    #[arg(long, conflicts_with_all = ["format", "json", "run"])]
    pub schema: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno site results --out public
  dyno site runs --out my-site

Open index.html in a browser; the pages need neither a server nor a network. \
Exits 1 when a record has no page because it cannot be read, and 2 when no record can be read.")]
pub struct SiteArgs {
    /// Directory of records, which are found at any depth
    #[arg(value_name = "RECORDS", default_value = "results")]
    pub records: PathBuf,
    /// Write the pages into DIR, over an earlier site
    #[arg(short, long, value_name = "DIR", default_value = "public")]
    pub out: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno lint runs
  dyno lint published-figures.toml
  dyno lint fio.json

Reads files of fio, hyperfine, criterion, google-benchmark, JMH, pytest-benchmark, pgbench, wrk2, \
redis-benchmark and ClickBench too, and says what cannot be known from each. \
Exits 1 when a figure cannot be right.")]
pub struct LintArgs {
    /// Run, directory of runs, file of figures (*.toml), or result of another tool
    #[arg(value_name = "RUN|FILE", default_value = "runs")]
    pub what: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno claims README.md docs/*.md
  dyno claims README.md --write

A claim is a figure between two comments that Markdown does not show:
  <!-- dyno:claim results/epyc/run#load-gz-2 vs=chdb -->4.26<!-- /claim -->

Exits 1 when a figure is not what its record says or may not be quoted, and 2 when a comment cannot \
be read or its record is missing.")]
pub struct ClaimsArgs {
    /// Markdown documents
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Change nothing and say which figures differ; this is the default
    #[arg(long, conflicts_with = "write")]
    pub check: bool,
    /// Write the figures of the records into the documents
    #[arg(long)]
    pub write: bool,
    /// Look for the records that claims name below DIR
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub records: PathBuf,
    /// Print every claim as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno rank results/epyc-2-cores/2026-11-21-wspr-full
  dyno rank laptop/runs server/runs --baseline duckdb --json

A rank is among the systems of one record, and is a range where no verdict tells them apart. \
Exits 2 when the records are of several suites.")]
pub struct RankArgs {
    /// Runs of one suite, or directories of runs, of which the latest is used
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    /// Compare each system with SYSTEM, within its own record
    #[arg(long, value_name = "SYSTEM", default_value = "dyno")]
    pub baseline: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno selfcheck
  dyno selfcheck --full --json

Lints figures with planted faults and figures that are right, and compares simulated programs whose \
difference is known. Exits 1 when a goal is not reached: 90% of the faults found, no figure that is \
right called an error, false alarms in at most 5% of comparisons, 93% to 97% of intervals right.")]
pub struct SelfcheckArgs {
    /// Simulate 20,000 runs of each kind instead of 2,000
    #[arg(long)]
    pub full: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
