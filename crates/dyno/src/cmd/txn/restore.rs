//! `dyno txn restore`: a directory out of a backup.

use crate::args::TxnRestoreArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &TxnRestoreArgs) -> anyhow::Result<Exit> {
    dyno_txn_node::restore(&args.from, &args.data)?;
    terminal::print(&format!(
        "{} holds what {} held",
        args.data.display(),
        args.from.display()
    ))?;
    Ok(Exit::Done)
}
