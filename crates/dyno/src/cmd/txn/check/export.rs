//! `dyno txn check export`: a history in the form of checkers that we did not write.

use anyhow::bail;
use dyno_txn_check::history::{History, Part};

use crate::args::{ExportFormat, ExportModel, TxnCheckExportArgs};
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &TxnCheckExportArgs) -> anyhow::Result<Exit> {
    let (part, name) = match args.model {
        ExportModel::ListAppend => (Part::Lists, "lists"),
        ExportModel::RwRegister => (Part::Registers, "registers"),
    };
    let history = History::load(&args.history)?.for_elle(part);
    // A checker accepts an empty history, and that would look like a proof.
    if history.is_empty() {
        bail!(
            "no transaction of {} touched any {name}",
            args.history.display()
        );
    }
    let text = match args.format {
        ExportFormat::ElleJson => history.to_json(),
        ExportFormat::Edn => history.to_edn(),
    };
    terminal::print(text.trim_end())?;
    Ok(Exit::Done)
}
