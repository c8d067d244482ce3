//! `dyno pages ...`: the store of compressed pages.

mod bench;
mod check;

use dyno_suite::Stop;

use crate::args::{PagesArgs, PagesCommand};
use crate::exit::Exit;

pub fn run(args: &PagesArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        PagesCommand::Bench(args) => bench::run(args, stop),
        PagesCommand::Check(args) => check::run(args, stop),
        PagesCommand::CheckJob => check::job(),
    }
}
