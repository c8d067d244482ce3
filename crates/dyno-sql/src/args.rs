//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub mod readback;
pub mod tpch;

use crate::output::Format;
use crate::session::Limits;

/// SQL over a spots table, or over TPC-H tables.
#[derive(Debug, Parser)]
#[command(name = "dyno-sql", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs SQL statements and prints their results
    #[command(after_help = QUERY_EXAMPLES)]
    Query(QueryArgs),
    /// Times one query inside this process and prints JSON
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Runs and checks the TPC-H benchmark's queries
    #[command(subcommand)]
    Tpch(tpch::TpchCommand),
    /// Reads written tables with the readers of other projects and prints their count and checksum as JSON
    #[command(subcommand)]
    Readback(readback::ReadbackCommand),
    /// Prints the versions of this program and of its SQL engine
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
  dyno-sql bench spots/ \"SELECT band, count(*) FROM spots GROUP BY band\" --threads 2 --repeats 5";

/// Arguments of `query`.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// The table's directory, made by `dyno ingest load`
    pub table: PathBuf,
    /// One or more statements, separated by semicolons, over the table `spots` (or `wspr.bronze`) and those of
    /// other feeds: `rbn`, `cabrillo`, `psk`, `solar`
    pub sql: String,
    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Refuse all but one SELECT: for text that came from a stranger
    #[arg(long)]
    pub select_only: bool,
    /// Print so many rows at most, and say on stderr that there are more
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_rows: Option<usize>,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// What the query may use.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The table's directory, made by `dyno ingest load`
    pub table: PathBuf,
    /// The query
    pub sql: String,
    /// How often to run it
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    pub repeats: usize,
    /// What the query may use.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Bounds of a query.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Threads to use [default: all cores]
    #[arg(long, value_parser = at_least_one)]
    pub threads: Option<usize>,
    /// Memory for grouping, sorting and joining; what needs more spills to disk
    #[arg(long, default_value = "1GiB", value_parser = size_bytes)]
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
