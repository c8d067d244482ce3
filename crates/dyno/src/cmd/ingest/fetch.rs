//! `dyno ingest fetch`: published archives onto this machine.

use std::time::Duration;

use dyno_ingest_feeds::calendar::Day;
use dyno_ingest_fetch::{Fetch, FetchError, Outcome, Period};
use dyno_report::quantity;
use dyno_suite::Stop;
use serde_json::{Value, json};

use super::now_ms;
use crate::args::FetchArgs;
use crate::exit::Exit;
use crate::progress::WorkBar;
use crate::terminal;

/// How long an attempt may take; the next one goes on from there.
const ATTEMPT: Duration = Duration::from_secs(600);

pub fn run(args: &FetchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let period = Period::parse(args.feed, &args.period, Day::from_ms(now_ms()))?;
    let mut from = args
        .mirror
        .clone()
        .unwrap_or_else(|| args.feed.address().to_owned());
    if !from.ends_with('/') {
        from.push('/');
    }
    let fetch = Fetch {
        from,
        folder: args.into.clone(),
        attempts: args.attempts.max(1),
        first_wait: Duration::from_secs(1),
        attempt: ATTEMPT,
    };
    let files = period.files();
    let bar = WorkBar::new(files.len() as u64, "files");
    let mut exit = Exit::Done;
    let mut done = Vec::new();
    for name in &files {
        bar.say(name);
        // A file that fails does not end the download: the others are independent of it, and the
        // exit code and the table name it.
        let outcome = fetch.file(name, stop.flag(), &|_| {});
        bar.add(1);
        match &outcome {
            Err(FetchError::Stopped) => return Err(FetchError::Stopped.into()),
            Err(error) => {
                eprintln!("dyno: {error}");
                exit = Exit::Failure;
            }
            Ok(Outcome::Fetched {
                warning: Some(warning),
                ..
            }) => eprintln!("warning: {warning}"),
            Ok(_) => {}
        }
        done.push((name, outcome));
    }
    drop(bar);
    let missing =
        |(_, outcome): &(_, Result<Outcome, FetchError>)| matches!(outcome, Ok(Outcome::Missing));
    if done.iter().all(missing) {
        eprintln!("dyno: {} has none of them", fetch.from);
        exit = Exit::No;
    }
    if args.json {
        let list: Vec<Value> = done
            .iter()
            .map(|(name, outcome)| as_json(name, outcome))
            .collect();
        terminal::print(&serde_json::to_string_pretty(&json!({ "files": list }))?)?;
    } else {
        let mut table = terminal::table(&["file", "what happened"]);
        for (name, outcome) in &done {
            table.add_row([(*name).clone(), as_text(outcome)]);
        }
        terminal::print(&table.to_string())?;
    }
    Ok(exit)
}

fn as_text(outcome: &Result<Outcome, FetchError>) -> String {
    match outcome {
        Ok(Outcome::Fetched {
            bytes, resumed: 0, ..
        }) => format!("fetched, {}", quantity(*bytes as f64, "B")),
        Ok(Outcome::Fetched { bytes, resumed, .. }) => format!(
            "fetched, {}, {} of it earlier",
            quantity(*bytes as f64, "B"),
            quantity(*resumed as f64, "B")
        ),
        Ok(Outcome::Unchanged) => "there already".to_owned(),
        Ok(Outcome::Missing) => "the server has none".to_owned(),
        Err(_) => "failed, see above".to_owned(),
    }
}

fn as_json(name: &str, outcome: &Result<Outcome, FetchError>) -> Value {
    match outcome {
        Ok(Outcome::Fetched {
            bytes,
            resumed,
            warning,
        }) => json!({
            "file": name, "outcome": "fetched", "bytes": bytes, "resumed_bytes": resumed, "warning": warning,
        }),
        Ok(Outcome::Unchanged) => json!({ "file": name, "outcome": "unchanged" }),
        Ok(Outcome::Missing) => json!({ "file": name, "outcome": "missing" }),
        Err(error) => json!({ "file": name, "outcome": "failed", "error": error.to_string() }),
    }
}
