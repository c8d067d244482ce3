//! `dyno pages ...`: the store of compressed pages.

mod about;
mod attach;
mod bench;
mod check;
mod control;
mod daemon;
mod device;
mod kept;
mod memory;
mod metrics;
mod place;
mod serve;
mod show;
mod status;
mod store;
mod watch;

use dyno_suite::Stop;

use crate::args::{PagesArgs, PagesCommand};
use crate::exit::Exit;

pub fn run(args: &PagesArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        PagesCommand::Serve(args) => serve::run(args, stop),
        PagesCommand::Attach(args) => attach::run(args),
        PagesCommand::Detach(args) => attach::detach(args),
        PagesCommand::Reset(args) => status::reset(args),
        PagesCommand::Idle(args) => status::idle(args),
        PagesCommand::Writeback(args) => status::write_back(args),
        PagesCommand::Status(args) => status::run(args, stop),
        PagesCommand::List(args) => status::list(args),
        PagesCommand::Compact(args) => status::compact(args),
        PagesCommand::Bench(args) => bench::run(args, stop),
        PagesCommand::Check(args) => check::run(args, stop),
        PagesCommand::CheckJob => check::job(),
        PagesCommand::Hold(args) => daemon::hold(&args.socket),
        PagesCommand::Device(args) => daemon::run(args, stop),
    }
}
