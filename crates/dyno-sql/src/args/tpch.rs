//! The command line of `tpch`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dyno_tpch::queries::Query;
use dyno_tpch::{Scale, Table};

use super::{LimitArgs, at_least_one};
use crate::output::Format;
use crate::tpch::layout::FileFormat;

/// The commands for a directory of TPC-H tables.
#[derive(Debug, Subcommand)]
pub enum TpchCommand {
    /// Run queries of the benchmark, and check their answers
    #[command(after_help = QUERY_EXAMPLES)]
    Query(TpchQueryArgs),
    /// Check that the tables are those of the benchmark: sizes, keys, rules, every value
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(TpchVerifyArgs),
    /// Write tables in the mode baseline for `dyno tpch gen`, which sends its order over a socket
    /// that is the standard input
    #[command(hide = true)]
    Write,
}

const QUERY_EXAMPLES: &str = "\
Examples:
  dyno-sql tpch query sf1/ --check
  dyno-sql tpch query sf1/ --q 1,6,18 --threads 2 --repeats 5
  dyno-sql tpch query sf1/ --q 3 --format csv

The answers are those that the specification publishes for scale factor 1.";

/// Arguments of `tpch query`, which runs some or all of the 22 queries.
#[derive(Debug, Args)]
pub struct TpchQueryArgs {
    /// Directory of the tables: DIR/lineitem.parquet, or parts DIR/lineitem/lineitem.1.parquet, ...
    pub directory: PathBuf,
    /// Run only these queries, by number [default: all 22]
    #[arg(long = "q", value_name = "N", value_delimiter = ',', value_parser = query_number)]
    pub queries: Vec<u8>,
    /// Compare with the published answers instead of printing the results; exit 1 if one differs
    #[arg(long)]
    pub check: bool,
    /// Time each query N times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub repeats: usize,
    /// Print the results as FORMAT
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub format: Format,
    /// Print one JSON object of times and verdicts
    #[arg(long)]
    pub json: bool,
    /// How to read the tables.
    #[command(flatten)]
    pub source: SourceArgs,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  dyno-sql tpch verify sf1/
  dyno-sql tpch verify sf1/ --tables orders,lineitem --json

Exits 1 when a check fails, and names the first rows that fail it.";

/// Arguments of `tpch verify`, which checks the tables themselves.
#[derive(Debug, Args)]
pub struct TpchVerifyArgs {
    /// Directory of the tables: DIR/lineitem.parquet, or parts DIR/lineitem/lineitem.1.parquet, ...
    pub directory: PathBuf,
    /// Check only these tables [default: all eight]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub tables: Vec<Table>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// How to read the tables.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// How to read the tables.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// Expect scale factor F [default: read from the tables]
    #[arg(long, value_name = "F", value_parser = scale)]
    pub sf: Option<Scale>,
    /// Read only files of FORMAT
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub files: Option<FileFormat>,
    /// Threads and memory that each query may use.
    #[command(flatten)]
    pub limits: LimitArgs,
}

fn query_number(text: &str) -> Result<u8, String> {
    let number = text.trim_start_matches('q').parse().ok();
    number
        .filter(|&number| Query::numbered(number).is_some())
        .ok_or_else(|| "the queries are numbered from 1 to 22".to_owned())
}

fn scale(text: &str) -> Result<Scale, String> {
    let factor: f64 = text.parse().map_err(|error| format!("{error}"))?;
    Scale::new(factor).map_err(|error| error.to_string())
}
