//! `dyno txn ...`: the transactional engine's own commands.

mod backup;
mod bench;
mod check;
mod restore;
mod serve;
mod shell;
mod status;

use std::path::Path;

use anyhow::Context;
use dyno_suite::Stop;

use crate::args::{TxnArgs, TxnCommand};
use crate::exit::Exit;

/// Where a token may be handed over without a file.
const TOKEN_VARIABLE: &str = "DYNO_TOKEN";

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

/// The token of a file, or of the environment.
pub fn token(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    if let Some(file) = file {
        let read = || format!("cannot read the token in {}", file.display());
        let text = std::fs::read_to_string(file).with_context(read)?;
        return Ok(Some(text.trim().to_owned()));
    }
    Ok(std::env::var(TOKEN_VARIABLE)
        .ok()
        .filter(|token| !token.is_empty()))
}
