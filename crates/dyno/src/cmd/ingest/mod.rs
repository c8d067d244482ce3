//! `dyno ingest ...`: the archive engine's own commands.

mod ask;
mod bench;
mod clickhouse;
mod collect;
mod features;
mod fetch;
mod generate;
mod load;
mod query;
mod serve;
mod status;
mod watch;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use dyno_ingest::table::{self, TableWriter};
use dyno_suite::Stop;
use jiff::Timestamp;

use crate::args::{Catalog, IngestArgs, IngestCommand};
use crate::exit::Exit;

pub fn run(args: &IngestArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        IngestCommand::Gen(args) => generate::run(args, stop),
        IngestCommand::Load(args) => load::run(args, stop),
        IngestCommand::Query(args) => query::run(args),
        IngestCommand::Serve(args) => serve::run(args),
        IngestCommand::Features(args) => features::run(args),
        IngestCommand::Ask(args) => ask::run(args),
        IngestCommand::Status(args) => status::run(args),
        IngestCommand::Watch(args) => watch::run(args, stop),
        IngestCommand::Collect(args) => collect::run(args, stop),
        IngestCommand::Fetch(args) => fetch::run(args, stop),
        IngestCommand::Bench(args) => bench::run(args, stop),
    }
}

/// Gives the table in `into` the catalogue that the caller asks for; a table that has it keeps it
/// without being asked.
fn set_catalog(into: &Path, catalog: Option<Catalog>) -> anyhow::Result<()> {
    let Some(Catalog::Iceberg) = catalog else {
        return Ok(());
    };
    if clickhouse::address(into)?.is_some() {
        bail!("--catalog is for a directory, not for --into clickhouse://...");
    }
    TableWriter::open(into)?.set_catalog(table::Catalog::Iceberg)?;
    Ok(())
}

/// Threads to use when the caller does not say how many.
fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Milliseconds since 1970-01-01 00:00 UTC.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// A time in seconds since 1970 as `2026-11-20T12:34:56Z`, or as it is if it is beyond the years
/// that have four digits.
fn moment(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| format!("{seconds} s"), |time| time.to_string())
}
