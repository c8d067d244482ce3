//! `dyno txn ...`: the transactional engine's own commands.

mod backup;
mod bench;
mod check;
mod restore;
mod serve;
mod shell;
mod status;

use dyno_suite::Stop;

use crate::args::{TxnArgs, TxnCommand};
use crate::exit::Exit;

pub fn run(args: &TxnArgs, stop: &Stop) -> anyhow::Result<Exit> {
    match &args.command {
        TxnCommand::Serve(args) => serve::run(args, stop),
        TxnCommand::Shell(args) => shell::run(args, stop),
        TxnCommand::Status(args) => status::run(args),
        TxnCommand::Backup(args) => backup::run(args),
        TxnCommand::Restore(args) => restore::run(args),
        TxnCommand::Check(args) => check::run(args, stop),
        TxnCommand::Bench(args) => bench::run(args, stop),
    }
}
