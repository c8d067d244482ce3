//! Tables on ClickHouse servers, for the commands that take a directory too.

use std::path::Path;

use anyhow::{Context, bail};
use dyno_ingest::load::{Input, LoadReport, Options, Progress, ServerReport};
use dyno_ingest_clickhouse::ledger::State;
use dyno_ingest_clickhouse::{Address, Servers, Settings};
use dyno_ingest_feeds::{Feed, load_into};
use dyno_report::{counted, quantity};
use serde_json::{Value, json};

use super::moment;
use crate::args::{ServerLoadArgs, StatusArgs};
use crate::{secrets, terminal};

/// The address that `place` is, when it is not a directory's.
pub fn address(place: &Path) -> anyhow::Result<Option<Address>> {
    match place.to_str() {
        Some(text) if Address::is_meant(text) => Ok(Some(text.parse()?)),
        _ => Ok(None),
    }
}

/// Refuses options that only a server understands, because ignoring them silently would mislead the
/// user.
pub fn refuse_options(args: &ServerLoadArgs) -> anyhow::Result<()> {
    let given = [
        ("--connections", args.connections.is_some()),
        ("--dictionary-types", args.dictionary_types),
        ("--cluster", args.cluster.is_some()),
        ("--password-file", args.access.password_file.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => bail!("{option} is for --into clickhouse://..., not for a directory"),
        None => Ok(()),
    }
}

/// Loads `inputs`, archives of one feed, into the table of `address`.
pub fn load(
    feed: &'static Feed,
    inputs: Vec<Input>,
    address: &Address,
    server: &ServerLoadArgs,
    options: &Options,
    progress: &Progress,
) -> anyhow::Result<LoadReport> {
    // One archive is sent over two connections, so that its parts compress and insert side by side.
    // Several archives are loaded side by side already.
    let few = if inputs.len() == 1 { 2 } else { 1 };
    let settings = Settings {
        password: secrets::clickhouse_password(server.access.password_file.as_deref())?,
        connections: server.connections.unwrap_or(few).max(1),
        dictionary_types: server.dictionary_types,
        cluster: server.cluster.clone(),
        patience: server.patience,
        stop: progress.stop.clone(),
    };
    let servers = Servers {
        address: address.clone(),
        settings,
    };
    Ok(load_into(feed, inputs, &servers, options, progress)?)
}

/// What a server did meanwhile, for people: nothing where all went smoothly.
pub fn as_text(server: &ServerReport) -> String {
    let mut text = String::new();
    if server.resent > 0 {
        text.push_str(&format!(", {} blocks sent again", server.resent));
    }
    if server.merge_wait_s > 0.0 {
        text.push_str(&format!(
            ", {:.1} s waited for merges at {} parts",
            server.merge_wait_s, server.parts_most
        ));
    }
    text
}

/// The same as an object, for programs.
pub fn as_json(server: &ServerReport) -> Value {
    json!({
        "blocks": server.blocks,
        "resent": server.resent,
        "merge_wait_s": server.merge_wait_s,
        "parts_most": server.parts_most,
    })
}

/// What the ledger of a table says.
pub fn status(address: &Address, args: &StatusArgs) -> anyhow::Result<String> {
    let password = secrets::clickhouse_password(args.access.password_file.as_deref())?;
    let status = dyno_ingest_clickhouse::status(address, &password)?;
    let bad_rows: u64 = status.archives.iter().map(|entry| entry.bad_rows).sum();
    if args.json {
        let archives: serde_json::Map<String, Value> = status
            .archives
            .iter()
            .map(|entry| {
                let partitions: Vec<Value> = entry
                    .shares
                    .iter()
                    .filter(|share| share.rows > 0)
                    .map(|s| json!({ "server": s.server, "id": s.partition, "rows": s.rows }))
                    .collect();
                let value = json!({
                    "state": state(entry.state),
                    "source": entry.source,
                    "rows": entry.rows,
                    "bad_rows": entry.bad_rows,
                    "table_bytes": entry.table_bytes,
                    "partitions": partitions,
                    "generation": entry.generation,
                    "loaded_at_s": entry.loaded_at_s,
                    "writer": entry.writer,
                });
                (entry.archive.clone(), value)
            })
            .collect();
        let object = json!({
            "address": address.to_string(),
            "server_version": status.version,
            "rows": status.rows,
            "bad_rows": bad_rows,
            "archives": archives,
        });
        return serde_json::to_string_pretty(&object).context("the status as JSON");
    }
    let mut table = terminal::table(&["archive", "rows", "bad rows", "bytes", "loaded", "state"]);
    for entry in &status.archives {
        table.add_row([
            entry.archive.clone(),
            entry.rows.to_string(),
            entry.bad_rows.to_string(),
            quantity(entry.table_bytes as f64, "B"),
            moment(entry.loaded_at_s.cast_signed()),
            state(entry.state).to_string(),
        ]);
    }
    Ok(format!(
        "{table}\n{address}: {}, {} in the ledger, {} in quarantine, ClickHouse {}",
        counted(status.rows, "row"),
        counted(status.archives.len() as u64, "archive"),
        counted(bad_rows, "row"),
        status.version,
    ))
}

fn state(state: State) -> &'static str {
    match state {
        State::Swap => "being put there",
        State::Done => "there",
    }
}
