//! The command line of `dyno-sql`, which `dyno` writes when it starts this program as its child.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub mod features;
pub mod readback;
pub mod serve;
pub mod tpch;

use crate::output::Format;
use crate::session::Limits;

/// Run SQL over a spots table or over TPC-H tables
#[derive(Debug, Parser)]
#[command(name = "dyno-sql", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// Command to run, with its own arguments.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run SQL statements and print their results
    #[command(after_help = QUERY_EXAMPLES)]
    Query(QueryArgs),
    /// Serve a table to clients of PostgreSQL and of HTTP
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::ServeArgs),
    /// Time one query inside this process, and print JSON
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Make a training set of the spots of a table
    #[command(after_help = features::EXAMPLES)]
    Features(features::FeaturesArgs),
    /// Run and check the queries of TPC-H
    #[command(subcommand)]
    Tpch(tpch::TpchCommand),
    /// Read written tables with the readers of other projects, and print counts and checksums as
    /// JSON
    #[command(subcommand)]
    Readback(readback::ReadbackCommand),
    /// Print the versions of this program and of its SQL engine
    Version,
}

const QUERY_EXAMPLES: &str = "\
Examples:
  dyno-sql query spots/ \"SELECT count(*) FROM spots\"
  dyno-sql query spots/ \"SELECT callsign, avg(snr) AS snr FROM wspr.bronze GROUP BY callsign
    ORDER BY snr DESC LIMIT 10\" --format csv
  dyno-sql query spots/ \"SHOW COLUMNS FROM spots\"";

const BENCH_EXAMPLES: &str = "\
Examples:
  dyno-sql bench spots/ \"SELECT count(*) FROM spots\"
  dyno-sql bench spots/ \"SELECT band, count(*) FROM spots GROUP BY band\" --threads 2 --repeats 5";

/// Arguments of `dyno-sql query`, which prints results.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// Directory of the table, made by `dyno ingest load`
    pub table: PathBuf,
    /// Statements to run, separated by semicolons, over the table `spots` (or `wspr.bronze`) and
    /// the tables of other feeds, which have the feeds' names
    pub sql: String,
    /// Print the results as FORMAT
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub format: Format,
    /// Accept only one SELECT, for text that is not trusted
    #[arg(long)]
    pub select_only: bool,
    /// Print at most N rows, and warn on stderr if there are more
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_rows: Option<usize>,
    /// Stop a query after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// Threads and memory that the query may use.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Arguments of `dyno-sql bench`, which prints times.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Directory of the table, made by `dyno ingest load`
    pub table: PathBuf,
    /// Query to time, over the same tables as `query`
    pub sql: String,
    /// Time the query N times
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    pub repeats: usize,
    /// Threads and memory that the query may use.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Threads and memory that a query may use.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Use N threads [default: all]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,
    /// Use at most SIZE of memory to group, sort and join; beyond that spill to disk
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size_bytes)]
    pub memory: usize,
}

impl LimitArgs {
    /// The bounds with defaults filled in.
    pub fn limits(&self) -> Limits {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Limits {
            threads: self.threads.unwrap_or_else(cores),
            memory_bytes: self.memory,
        }
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

/// Bytes from `64KiB`, `1GB` or a plain number.
fn size_bytes(text: &str) -> Result<usize, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_bytes: usize = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        other => {
            return Err(format!(
                "unknown unit {other:?}; use KiB, MiB, GiB, KB, MB or GB"
            ));
        }
    };
    let number: usize = number
        .parse()
        .map_err(|error| format!("{text:?}: {error}"))?;
    match number.checked_mul(unit_bytes) {
        Some(0) => Err("at least 1 byte is needed".to_owned()),
        Some(bytes) => Ok(bytes),
        None => Err(format!("{text:?} is above what this machine can address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size_bytes("1GiB"), Ok(1 << 30));
        assert_eq!(size_bytes("64KB"), Ok(64_000));
        assert_eq!(size_bytes("4096"), Ok(4096));
        for wrong in ["", "GiB", "1 parsec", "0MiB", "99999999999999GiB"] {
            assert!(size_bytes(wrong).is_err(), "{wrong:?}");
        }
    }
}
