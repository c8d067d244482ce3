//! `dyno tpcc ...`: the transactions of TPC-C on any engine.

mod check;
mod load;
mod output;
mod run;

use dyno_suite::Stop;

use crate::args::{TpccArgs, TpccCommand};
use crate::exit::Exit;

pub fn run(args: &TpccArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        TpccCommand::Load(args) => load::run(args, stop),
        TpccCommand::Run(args) => run::run(args, stop),
        TpccCommand::Check(args) => check::run(args),
    }
}
