//! `dyno ingest load`: archives into a table.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use dyno_ingest::load::{
    ArchiveReport, Before, Engine, Input, LoadReport, Options, Outcome, Progress,
};
use dyno_ingest::table::{Damage, Snapshot, WSPR};
use dyno_report::{counted, quantity};
use dyno_suite::Stop;
use serde_json::{Value, json};

use super::{all_threads, clickhouse, set_catalog};
use crate::args::{Inflate, LoadArgs};
use crate::exit::Exit;
use crate::progress::WorkBar;
use crate::terminal;

/// Time between two readings of the counters.
const TICK: Duration = Duration::from_millis(100);

pub fn run(args: &LoadArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let options = Options {
        workers: args.threads.unwrap_or_else(all_threads),
        max_bad: args.max_bad,
        memory: usize::try_from(args.memory).context("--memory")?,
        engine: match args.inflate {
            Inflate::Native => Engine::Native,
            Inflate::Portable => Engine::Portable,
        },
        identity: args.identity.clone(),
    };
    if args.feed.name == WSPR {
        refuse_other_feeds(&args.files)?;
    }
    let (inputs, bytes) = inputs(&args.files)?;
    set_catalog(&args.into, args.catalog)?;
    let report = watched(inputs, bytes, args, &options, stop)?;
    for archive in &report.archives {
        for warning in &archive.warnings {
            eprintln!("warning: {warning}");
        }
    }
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&as_json(&report))?)?;
    } else {
        terminal::print(&as_text(&report, args))?;
    }
    // Damage of other archives is told after the result and does not fail the load, which did what
    // it was asked.
    for damage in damage(&args.into) {
        eprintln!("warning: {damage}; load {} again", damage.source);
    }
    let mut exit = Exit::Done;
    for (_, error) in report.failures() {
        eprintln!("dyno: {error}");
        exit = Exit::Failure;
    }
    Ok(exit)
}

/// What the table lacks beside what was loaded just now. A load mends the archives that it is
/// given, and no others.
fn damage(into: &Path) -> Vec<Damage> {
    // A table of a server has no files here, and what is wrong with a manifest the load has said.
    Snapshot::open(into).map_or_else(|_| Vec::new(), |snapshot| snapshot.damage())
}

/// The inputs, and how many bytes they have as far as is known.
fn inputs(files: &[PathBuf]) -> anyhow::Result<(Vec<Input>, u64)> {
    let mut bytes = 0;
    let mut inputs = Vec::new();
    for file in files {
        if file.as_os_str() == "-" {
            inputs.push(Input::Stream("stdin".to_string(), Box::new(io::stdin())));
            continue;
        }
        bytes += file
            .metadata()
            .with_context(|| format!("cannot open {}", file.display()))?
            .len();
        inputs.push(Input::File(file.clone()));
    }
    Ok((inputs, bytes))
}

/// Refuses files of other feeds before any is loaded, because all their rows would be bad. The
/// readers of the other feeds look themselves; the load reports a file that cannot be opened.
fn refuse_other_feeds(files: &[PathBuf]) -> anyhow::Result<()> {
    for file in files.iter().filter(|file| file.as_os_str() != "-") {
        if let Ok(Some(feed)) = dyno_ingest_feeds::feed_of_file(file)
            && feed != WSPR
        {
            bail!(
                "{}: it looks like feed {feed}, not wspr; load it with --feed {feed}",
                file.display()
            );
        }
    }
    Ok(())
}

/// Loads with a bar over the compressed bytes, the only measure that is right for every input.
fn watched(
    inputs: Vec<Input>,
    bytes: u64,
    args: &LoadArgs,
    options: &Options,
    stop: &Stop,
) -> anyhow::Result<LoadReport> {
    let progress = Progress::default();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // The bar is drawn by a thread of its own. The load runs on this one, and counts in atomics
        // that cost it nothing.
        let watcher = scope.spawn(|| {
            let bar = WorkBar::new(bytes, "bytes");
            while !done.load(Ordering::Relaxed) {
                bar.at(progress.bytes.load(Ordering::Relaxed));
                bar.say(&quantity(
                    progress.rows.load(Ordering::Relaxed) as f64,
                    "rows",
                ));
                if stop.asked() {
                    progress.stop.store(true, Ordering::Relaxed);
                }
                thread::park_timeout(TICK);
            }
        });
        let report = match clickhouse::address(&args.into) {
            Err(error) => Err(error),
            Ok(Some(address)) => clickhouse::load(
                args.feed,
                inputs,
                &address,
                &args.server,
                options,
                &progress,
            ),
            Ok(None) => clickhouse::refuse_options(&args.server).and_then(|()| {
                let table = &args.into;
                let loaded = dyno_ingest_feeds::load(args.feed, inputs, table, options, &progress);
                Ok(loaded?)
            }),
        };
        // The watcher is woken, so that a load of a millisecond does not last a tick. A flag alone
        // would be seen only after the tick.
        done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        report
    })
}

fn as_text(report: &LoadReport, args: &LoadArgs) -> String {
    let mut table = terminal::table(&["archive", "rows", "bad rows", "seconds", "what happened"]);
    for archive in &report.archives {
        let (rows, bad) = counts(archive);
        table.add_row([
            archive.identity.clone(),
            rows.to_string(),
            bad.to_string(),
            format!("{:.2}", archive.seconds),
            outcome(archive),
        ]);
    }
    let rows = report.rows();
    format!(
        "{table}\n{} loaded into {} in {:.2} s: {}",
        counted(rows, "row"),
        args.into.display(),
        report.seconds,
        quantity(rows as f64 / report.seconds, "rows/s"),
    )
}

fn counts(archive: &ArchiveReport) -> (u64, u64) {
    match archive.outcome {
        Outcome::Loaded { rows, bad_rows, .. } => (rows, bad_rows),
        Outcome::AlreadyThere { rows } => (rows, 0),
        Outcome::Failed(_) => (0, 0),
    }
}

fn outcome(archive: &ArchiveReport) -> String {
    match &archive.outcome {
        Outcome::Loaded { before, server, .. } => {
            let done = match before {
                Before::Nothing => "loaded",
                Before::Earlier => "replaced what was there",
                Before::Damaged => "loaded again: its data file was missing or damaged",
            };
            let more = server.as_ref().map(clickhouse::as_text);
            format!("{done}{}", more.unwrap_or_default())
        }
        Outcome::AlreadyThere { .. } => "there already, same bytes".to_string(),
        Outcome::Failed(_) => "failed, see below".to_string(),
    }
}

fn as_json(report: &LoadReport) -> Value {
    let archives: Vec<Value> = report
        .archives
        .iter()
        .map(|archive| {
            let (rows, bad_rows) = counts(archive);
            let mut object = json!({
                "archive": archive.identity,
                "path": archive.path,
                "rows": rows,
                "bad_rows": bad_rows,
                "seconds": archive.seconds,
                "outcome": outcome(archive),
                "warnings": archive.warnings,
            });
            match &archive.outcome {
                Outcome::Failed(error) => object["error"] = error.to_string().into(),
                Outcome::Loaded {
                    blank_lines,
                    source_bytes,
                    table_bytes,
                    server,
                    ..
                } => {
                    object["blank_lines"] = (*blank_lines).into();
                    object["source_bytes"] = (*source_bytes).into();
                    object["table_bytes"] = (*table_bytes).into();
                    if let Some(server) = server {
                        object["server"] = clickhouse::as_json(server);
                    }
                }
                Outcome::AlreadyThere { .. } => {}
            }
            object
        })
        .collect();
    let stages = report.stages();
    json!({
        "rows": report.rows(),
        "seconds": report.seconds,
        "rows_per_s": report.rows() as f64 / report.seconds,
        "busy_s": {
            "inflate": stages.inflate,
            "parse": stages.parse,
            "encode": stages.encode,
            "write": stages.write,
        },
        "archives": archives,
    })
}
