//! `dyno ingest query`: hands the question to `dyno-sql`, which lies beside this program.

use anyhow::Context;
use dyno_ingest::table::Snapshot;

use crate::args::{QueryArgs, TableFormat};
use crate::exit::Exit;
use crate::sql;

pub fn run(args: &QueryArgs) -> anyhow::Result<Exit> {
    // Said here as every other command says it, and before the SQL engine is looked for.
    drop(Snapshot::open(&args.table)?);
    let mut command = sql::command()?;
    command.arg("query");
    let format = if args.json {
        TableFormat::Json
    } else {
        args.format
    };
    command.args(["--format", format.name()]);
    if let Some(threads) = args.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    // A statement may begin with a dash, as a comment does, and must not be taken for a flag.
    command.arg("--").arg(&args.table).arg(&args.sql);
    let status = command.status().context("cannot start the SQL engine")?;
    // It has said by itself what went wrong.
    Ok(if status.success() {
        Exit::Done
    } else {
        Exit::Failure
    })
}
