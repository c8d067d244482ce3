//! `dyno pages ...`: the store of compressed pages.

mod about;
mod attach;
mod bench;
mod check;
mod control;
mod daemon;
mod device;
mod device_options;
mod memory;
mod metrics;
mod pager;
mod serve;
mod show;
mod status;
mod store;
mod store_dir;
mod watch;

use dyno_suite::Stop;

use crate::args::{LogArgs, PagesArgs, PagesCommand};
use crate::exit::Exit;
use crate::logging;

pub fn run(args: &PagesArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        PagesCommand::Serve(args) => serve::run(args, stop),
        PagesCommand::Attach(args) => attach::run(args),
        PagesCommand::Pager(args) => pager::run(args, stop),
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
        // These two run in the background, where standard error is the device's log file.
        PagesCommand::Hold(args) => {
            logging::start(LogArgs::default());
            daemon::hold(args)
        }
        PagesCommand::Device(args) => {
            logging::start(LogArgs::default());
            daemon::run(args, stop)
        }
    }
}
