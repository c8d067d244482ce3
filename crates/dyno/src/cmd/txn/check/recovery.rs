//! `dyno txn check recovery`: measures how long a killed server takes to recover.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use dyno_suite::Stop;
use dyno_txn_check::recovery::{self, Options, Recovered};
use serde_json::json;

use super::{connect, own_and_folder, serve, until_asked};
use crate::args::TxnCheckRecoveryArgs;
use crate::exit::Exit;
use crate::terminal;

/// The longest log of one partition that the check accepts: 64 segments of 64 MiB, less the room
/// that padding takes.
const LOG_MOST: u64 = 3 << 30;

pub fn run(args: &TxnCheckRecoveryArgs, stop: &Stop) -> anyhow::Result<Exit> {
    ensure!(
        args.log <= LOG_MOST,
        "--log {}: the log of one partition holds {LOG_MOST} bytes",
        args.log
    );
    let (own, folder) = own_and_folder()?;
    // More than is written, so that no checkpoint shortens the log.
    let checkpoint = (args.log * 2).to_string();
    let ran = until_asked(stop, |stop| {
        recovery::run(&Options {
            start: &|data: &Path| {
                let mut command = serve(&own, data);
                command.args(["--checkpoint", &checkpoint]);
                command
            },
            connect: &connect,
            folder: &folder,
            log_bytes: args.log,
            seed: args.seed,
            stop,
        })
    });
    let found = ran.with_context(|| {
        let folder = folder.display();
        format!("the check came to no answer; what it left is in {folder}")
    })?;
    let in_time = args
        .within
        .is_none_or(|within| found.recovery_s <= within.as_secs_f64());
    let right = found.wrong_rows == 0;
    if right {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let text = if args.json {
        as_json(&found, in_time)?
    } else {
        as_text(&found, in_time, &folder)
    };
    terminal::print(&text)?;
    Ok(if right && in_time {
        Exit::Done
    } else {
        Exit::No
    })
}

fn bytes_per_s(found: &Recovered) -> f64 {
    found.log_bytes as f64 / found.recovery_s.max(1e-9)
}

fn as_json(found: &Recovered, in_time: bool) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&json!({
        "log_bytes": found.log_bytes,
        "transactions": found.transactions,
        "rows": found.rows,
        "recovery_s": found.recovery_s,
        "bytes_per_s": bytes_per_s(found),
        "read_s": found.read_s,
        "in_time": in_time,
        "holds": found.wrong_rows == 0,
        "wrong_rows": found.wrong_rows,
        "wrong": found.wrong,
    }))?)
}

fn as_text(found: &Recovered, in_time: bool, folder: &Path) -> String {
    let mut lines = vec![format!(
        "{:.2} GB of log, {} transactions: listens again after {:.2} s ({:.0} MB/s); {} rows read and compared in {:.2} s",
        found.log_bytes as f64 / 1e9,
        found.transactions,
        found.recovery_s,
        bytes_per_s(found) / 1e6,
        found.rows,
        found.read_s
    )];
    lines.extend(found.wrong.iter().map(|wrong| format!("broken: {wrong}")));
    lines.push(match (found.wrong_rows, in_time) {
        (0, true) => "every row is as it was answered".to_owned(),
        (0, false) => "every row is as it was answered, but it took too long".to_owned(),
        (wrong, _) => format!(
            "{wrong} rows are not as they were answered; the server's files are in {}",
            folder.display()
        ),
    });
    lines.join("\n")
}
