//! Entry point: parses the command line, runs one command, and turns its result into an exit code.

#[macro_use]
extern crate dyno_messages;

mod args;
mod built_in;
mod cmd;
mod command_line;
mod databases;
mod exit;
mod headline;
mod identity;
mod interrupt;
mod limits;
mod logging;
mod places;
mod progress;
mod resources;
mod resume;
mod runs;
mod scratch;
mod secrets;
mod session;
mod sql;
mod surroundings;
mod systems;
mod terminal;
mod times;
mod units;

use std::process::ExitCode;

use args::{Args, Command};
use exit::Exit;

fn main() -> ExitCode {
    let exit = match run(command_line::parse()) {
        Ok(exit) => exit,
        Err(error) => Exit::from_error(&error),
    };
    // A command that a signal stopped did not fail: a script that stops it must be able to tell the
    // two apart.
    match (exit, interrupt::signal()) {
        (Exit::Failure, Some(signal)) => Exit::Stopped(signal).into(),
        (exit, _) => exit.into(),
    }
}

fn run(args: Args) -> anyhow::Result<Exit> {
    // Children of the lab are killed by their parent and handle no signal themselves.
    match &args.command {
        Command::Rig(args) => return cmd::rig::run(args),
        Command::Beside(args) => return cmd::beside::run(args),
        _ => {}
    }
    let stop = interrupt::on_ctrl_c()?;
    match args.command {
        Command::Doctor(args) => cmd::doctor::run(&args),
        Command::Limits(args) => cmd::limits::run(&args, &stop),
        Command::Serve(args) => cmd::serve::run(&args, &stop),
        Command::Plan(args) => cmd::plan::run(&args),
        Command::Run(args) => cmd::run::run(&args, &stop),
        Command::Report(args) => cmd::report::run(&args),
        Command::Lint(args) => cmd::lint::run(&args),
        Command::Selfcheck(args) => cmd::selfcheck::run(&args),
        Command::Ab(args) => cmd::ab::run(&args, &stop),
        Command::Claims(args) => cmd::claims::run(&args),
        Command::History(args) => cmd::history::run(&args),
        Command::Rank(args) => cmd::rank::run(&args),
        Command::Site(args) => cmd::site::run(&args),
        Command::Compare(args) => cmd::compare::run(&args),
        Command::Gate(args) => cmd::compare::gate(&args),
        Command::Reproduce(args) => cmd::reproduce::run(&args, &stop),
        Command::Peers(args) => cmd::peers::run(&args, &stop),
        Command::Completions(args) => cmd::completions::run(&args),
        Command::Man(args) => cmd::man::run(&args),
        Command::Ingest(args) => cmd::ingest::run(&args, &stop),
        Command::Tpch(args) => cmd::tpch::run(&args, &stop),
        Command::Pubsub(args) => cmd::pubsub::run(&args, &stop),
        Command::Txn(args) => cmd::txn::run(&args, &stop),
        Command::Tpcc(args) => cmd::tpcc::run(&args, &stop),
        Command::Pages(args) => cmd::pages::run(&args, &stop),
        Command::Rig(args) => cmd::rig::run(&args),
        Command::Beside(args) => cmd::beside::run(&args),
        Command::Documents(args) => cmd::documents::run(&args),
    }
}
