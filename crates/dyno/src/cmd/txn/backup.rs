//! `dyno txn backup`: a copy of a database that runs.

use anyhow::Context;
use dyno_txn_api::Target;
use dyno_txn_open::DatabaseOptions;

use crate::args::TxnBackupArgs;
use crate::databases;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &TxnBackupArgs) -> anyhow::Result<Exit> {
    let on = &args.on.on;
    let options = DatabaseOptions {
        create: false,
        ..databases::options(&args.on, &args.guarantees)?
    };
    dyno_txn_open::backup(on, &options, &args.to)
        .with_context(|| format!("cannot back up {on}"))?;
    let place = match on {
        Target::Dyno(_) => "in the server's folder of backups",
        _ => "in this folder",
    };
    terminal::print(&format!("{on} is copied to {} {place}", args.to))?;
    Ok(Exit::Done)
}
