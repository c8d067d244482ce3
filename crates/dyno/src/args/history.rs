//! The flags of `dyno history` and of the commands below it.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  dyno history results
  dyno history history.ndjson --case load-gz-2 --format html > history.html
  dyno history history.ndjson --export bencher > bencher.json

Each machine, suite, size, case, system and metric is a series of its own. A change is reported \
when at least two newer runs agree on it."
)]
pub struct HistoryArgs {
    #[command(subcommand)]
    pub command: Option<HistoryCommand>,
    #[command(flatten)]
    pub show: HistoryShowArgs,
}

#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// Append a line for a run to a history file
    Add(HistoryAddArgs),
    /// Append a note on a date to a file of notes
    Note(HistoryNoteArgs),
}

#[derive(Debug, ClapArgs)]
pub struct HistoryShowArgs {
    /// Directories of runs, which are found at any depth, and history files
    #[arg(value_name = "RUNS|FILE", default_value = "runs")]
    pub from: Vec<PathBuf>,
    /// Show only the cases that match PATTERN, such as `load-*`; give it again for more [default:
    /// all]
    #[arg(long, value_name = "PATTERN")]
    pub case: Vec<String>,
    /// Show this metric; give it again for more metrics [default: the one that ranks each case]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Show this system; give it again for more systems [default: dyno]
    #[arg(long, value_name = "SYSTEM")]
    pub system: Vec<String>,
    /// Show only runs of the machine whose fingerprint begins with FINGERPRINT
    #[arg(long, value_name = "FINGERPRINT")]
    pub machine: Option<String>,
    /// Read notes from FILE [default: notes.toml beside the first RUNS or FILE]
    #[arg(long, value_name = "FILE")]
    pub notes: Option<PathBuf>,
    /// Print the history as FORMAT
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "md")]
    pub format: HistoryFormat,
    /// Print JSON, as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print the figures for PROGRAM instead
    #[arg(long, value_enum, value_name = "PROGRAM", conflicts_with_all = ["format", "json"])]
    pub export: Option<HistoryExport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HistoryFormat {
    /// Markdown
    #[value(alias = "markdown")]
    Md,
    /// One file that works offline, with a plot of each series
    Html,
    /// Series, changes and notes
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HistoryExport {
    /// The newest run in Bencher Metric Format (JSON)
    Bencher,
    /// All runs as CSV for Apache Otava
    Otava,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno history add runs/wspr-20261120T101500Z --to history.ndjson
  dyno history add runs --to history.ndjson --metric latency-p99

A run that is already in the file is not added again.")]
pub struct HistoryAddArgs {
    /// Run, or directory of runs, of which the latest is added
    #[arg(value_name = "RUN", default_value = "runs")]
    pub run: PathBuf,
    /// Append to FILE; made when missing
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Keep this metric too, beside the ranking one, time, cpu and peak-rss
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  dyno history note 2026-11-23 'kernel 6.12' --to notes.toml
  dyno history note 2026-11-23T10:15:00Z 'new disk' --to notes.toml --machine fc-v657")]
pub struct HistoryNoteArgs {
    /// Date such as 2026-11-23, alone or with a time in UTC
    #[arg(value_name = "DATE")]
    pub date: String,
    /// What happened
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// Append to FILE; made when missing
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Apply the note only to the cases that match PATTERN [default: all]
    #[arg(long, value_name = "PATTERN")]
    pub case: Option<String>,
    /// Apply the note only to the machine whose fingerprint begins with FINGERPRINT [default: all]
    #[arg(long, value_name = "FINGERPRINT")]
    pub machine: Option<String>,
}
