//! The command line of `features`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::LimitArgs;

/// The name of an output that is not a file.
pub const STANDARD_OUTPUT: &str = "-";

pub(super) const EXAMPLES: &str = "\
Examples:
  dyno-sql features spots/ --out features.parquet
  dyno-sql features spots/ --solar spots/ --out features.parquet --memory 256MiB
  dyno-sql features spots/ --format arrow --out - | python3 train.py

Spots whose grid is missing or is not a grid are left out and counted.";

/// The form of a training set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrainingFormat {
    /// A Parquet file.
    Parquet,
    /// A stream of Arrow record batches.
    Arrow,
}

/// Arguments of `dyno-sql features`, which makes a training set.
#[derive(Debug, Args)]
pub struct FeaturesArgs {
    /// Directory of the table, made by `dyno ingest load`
    pub table: PathBuf,
    /// Write the training set to FILE, over an earlier one; - is standard output
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Write the training set as FORMAT
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = TrainingFormat::Parquet)]
    pub format: TrainingFormat,
    /// Add the solar indices of each spot's day, from the table of the feed solar in DIR
    #[arg(long, value_name = "DIR")]
    pub solar: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Threads and memory that the sort may use.
    #[command(flatten)]
    pub limits: LimitArgs,
}
