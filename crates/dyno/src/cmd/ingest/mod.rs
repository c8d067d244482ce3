//! `dyno ingest ...`: the archive engine's own commands.

mod bench;
mod generate;
mod load;
mod query;
mod status;

use dyno_suite::Stop;

use crate::args::{IngestArgs, IngestCommand};
use crate::exit::Exit;

pub fn run(args: &IngestArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        IngestCommand::Gen(args) => generate::run(args, stop),
        IngestCommand::Load(args) => load::run(args, stop),
        IngestCommand::Query(args) => query::run(args),
        IngestCommand::Status(args) => status::run(args),
        IngestCommand::Bench(args) => bench::run(args, stop),
    }
}

/// Threads to use when nobody said how many.
fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
