//! `dyno ingest serve`: has `dyno-sql` serve a table, in the place of this process.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use dyno_ingest::table::Snapshot;

use crate::args::IngestServeArgs;
use crate::exit::Exit;
use crate::sql;

pub fn run(args: &IngestServeArgs) -> anyhow::Result<Exit> {
    // Reported here as by every other command, before the SQL engine is looked for.
    drop(Snapshot::open(&args.table)?);
    let mut command = sql::command()?;
    command.arg("serve");
    let numbers = [
        ("--memory", args.memory),
        ("--time-limit-ms", milliseconds(args)),
        ("--max-rows", args.max_rows as u64),
        ("--max-statements", args.max_statements as u64),
        ("--max-connections", args.max_connections as u64),
    ];
    for (flag, value) in numbers {
        command.args([flag, &value.to_string()]);
    }
    if let Some(threads) = args.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    for (flag, value) in [("--pg", &args.pg), ("--http", &args.http)] {
        if let Some(value) = value {
            command.args([flag, value]);
        }
    }
    let files = [
        ("--token-file=", &args.token_file),
        ("--tls-cert=", &args.tls_cert),
        ("--tls-key=", &args.tls_key),
    ];
    for (flag, file) in files {
        if let Some(file) = file {
            command.arg(joined(flag, file));
        }
    }
    command.args(["--log-level", &name(args.log.log_level)]);
    command.args(["--log-format", &name(args.log.log_format)]);
    command.arg("--").arg(&args.table);
    // The server takes the place of this process, so that a signal from a terminal, a script or
    // systemd reaches it directly. `exec` returns only on failure.
    let failed = command.exec();
    Err(failed).context("cannot start the SQL engine")
}

fn milliseconds(args: &IngestServeArgs) -> u64 {
    u64::try_from(args.time_limit.as_millis()).unwrap_or(u64::MAX)
}

/// The name of a value as the command line has it.
fn name(value: impl ValueEnum) -> String {
    let possible = value.to_possible_value();
    possible.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A flag and its file in one word, because the name of a file may begin with a dash.
fn joined(flag: &str, file: &Path) -> OsString {
    let mut word = OsString::from(flag);
    word.push(file);
    word
}
