//! `dyno ingest features`: has `dyno-sql` make a training set of a table.

use anyhow::Context;
use dyno_ingest::table::Snapshot;

use crate::args::FeaturesArgs;
use crate::exit::Exit;
use crate::sql;

pub fn run(args: &FeaturesArgs) -> anyhow::Result<Exit> {
    // Reported here as by every other command, before the SQL engine is looked for.
    drop(Snapshot::open(&args.table)?);
    if let Some(solar) = &args.solar {
        drop(Snapshot::open(solar)?);
    }
    let mut command = sql::command()?;
    command.arg("features");
    command.args(["--format", args.format.name()]);
    command.args(["--memory", &args.memory.to_string()]);
    // Joined to their flags, because the name of a file may begin with a dash.
    command.arg(joined("--out=", args.out.as_os_str()));
    if let Some(solar) = &args.solar {
        command.arg(joined("--solar=", solar.as_os_str()));
    }
    if let Some(threads) = args.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    if args.json {
        command.arg("--json");
    }
    command.arg("--").arg(&args.table);
    let status = command.status().context("cannot start the SQL engine")?;
    // The child has reported what went wrong.
    Ok(if status.success() {
        Exit::Done
    } else {
        Exit::Failure
    })
}

fn joined(flag: &str, value: &std::ffi::OsStr) -> std::ffi::OsString {
    let mut word = std::ffi::OsString::from(flag);
    word.push(value);
    word
}
