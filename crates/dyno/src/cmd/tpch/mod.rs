//! `dyno tpch ...`: the benchmark tables' own commands.

mod bench;
mod generate;
mod plan;
mod query;
mod verify;

use std::process::Command;

use anyhow::Context;
use dyno_suite::Stop;

use crate::args::{TpchArgs, TpchCommand, TpchSqlArgs};
use crate::exit::Exit;

pub fn run(args: &TpchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        TpchCommand::Gen(args) => generate::run(args, stop),
        TpchCommand::Verify(args) => verify::run(args),
        TpchCommand::Query(args) => query::run(args),
        TpchCommand::Plan(args) => plan::run(args),
        TpchCommand::Bench(args) => bench::run(args, stop),
    }
}

/// Runs the SQL engine, which prints its own errors, and returns its exit code.
fn hand_over(mut command: Command, args: &TpchSqlArgs) -> anyhow::Result<Exit> {
    if let Some(threads) = args.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    if args.json {
        command.arg("--json");
    }
    let status = command.status().context("cannot start the SQL engine")?;
    Ok(match status.code() {
        Some(0) => Exit::Done,
        Some(1) => Exit::No,
        _ => Exit::Failure,
    })
}
