//! `dyno txn backup`: a copy of a database that runs.

use anyhow::Context;
use dyno_rigs::txn::OpenHow;
use dyno_txn_api::Target;

use crate::args::TxnBackupArgs;
use crate::databases;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &TxnBackupArgs) -> anyhow::Result<Exit> {
    let on = &args.on.on;
    let how = OpenHow {
        create: false,
        ..databases::how(&args.on)?
    };
    dyno_rigs::txn::backup(on, &how, &args.to).with_context(|| format!("cannot back up {on}"))?;
    let place = match on {
        Target::Dyno(_) => "in the server's folder of backups",
        _ => "in this folder",
    };
    terminal::print(&format!("{on} is copied to {} {place}", args.to))?;
    Ok(Exit::Done)
}
