//! `dyno ingest status`: what is in a table.

use std::path::Path;

use dyno_ingest::table::{Archive, Position, Snapshot, Span};
use dyno_report::{counted, quantity};
use serde_json::json;

use super::{clickhouse, moment};
use crate::args::StatusArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &StatusArgs) -> anyhow::Result<Exit> {
    if let Some(address) = clickhouse::address(&args.table)? {
        terminal::print(&clickhouse::status(&address, args)?)?;
        return Ok(Exit::Done);
    }
    let snapshot = Snapshot::open(&args.table)?;
    let text = if args.json {
        as_json(&snapshot)?
    } else {
        as_text(&snapshot, &args.table)
    };
    terminal::print(&text)?;
    // The table is printed even if it is damaged, because its rows tell which archives are whole.
    let damage = snapshot.damage();
    for damage in &damage {
        eprintln!(
            "{damage}; load {} again, which mends the table",
            damage.source
        );
    }
    Ok(if damage.is_empty() {
        Exit::Done
    } else {
        Exit::No
    })
}

fn bytes(archive: &Archive) -> u64 {
    archive.files.iter().map(|file| file.bytes).sum()
}

fn as_text(snapshot: &Snapshot, path: &Path) -> String {
    let manifest = snapshot.manifest();
    let mut table = terminal::table(&[
        "archive",
        "rows",
        "bad rows",
        "bytes",
        "from",
        "to",
        "quarantine",
    ]);
    // A stream's spans come and go; the streams are told of below.
    let files = manifest
        .archives
        .iter()
        .filter(|(name, _)| Span::from_identity(name).is_none());
    for (name, archive) in files {
        let earliest = archive.files.iter().map(|file| file.time_min_s).min();
        let latest = archive.files.iter().map(|file| file.time_max_s).max();
        let day = |seconds: Option<i64>| seconds.map_or(String::new(), moment);
        table.add_row([
            name.clone(),
            archive.rows.to_string(),
            archive.bad_rows.to_string(),
            quantity(bytes(archive) as f64, "B"),
            day(earliest),
            day(latest),
            archive.quarantine.clone().unwrap_or_default(),
        ]);
    }
    let positions = manifest.positions();
    let streams: Vec<String> = positions
        .iter()
        .map(|(stream, position)| stands(stream, position))
        .collect();
    let streams = streams.concat();
    let rows = manifest.rows();
    format!(
        "{table}\n{streams}{}: {} in {} of {}, {} ({:.1} bytes a row), {} in quarantine, generation {}",
        path.display(),
        counted(rows, "row"),
        counted(manifest.files().count() as u64, "file"),
        counted(manifest.archives.len() as u64, "archive"),
        quantity(manifest.bytes() as f64, "B"),
        manifest.bytes() as f64 / rows.max(1) as f64,
        counted(manifest.bad_rows(), "row"),
        manifest.generation,
    )
}

/// Where a watch continues: the next offset, and the offsets before it that are not in the table.
fn stands(stream: &str, position: &Position) -> String {
    let missing: Vec<String> = position
        .missing
        .iter()
        .map(|(first, last)| format!("{first} to {last}"))
        .collect();
    let missing = if missing.is_empty() {
        String::new()
    } else {
        format!("; not there: offsets {}", missing.join(", "))
    };
    format!(
        "{stream}: next offset {}, {}, {}, {}{missing}\n",
        position.next,
        counted(position.rows, "row"),
        counted(position.bad_rows, "bad row"),
        counted(position.spans.len() as u64, "archive"),
    )
}

fn as_json(snapshot: &Snapshot) -> anyhow::Result<String> {
    let manifest = snapshot.manifest();
    let streams: serde_json::Map<String, serde_json::Value> = manifest
        .positions()
        .into_iter()
        .map(|(stream, position)| {
            let value = json!({
                "next_offset": position.next,
                "rows": position.rows,
                "bad_rows": position.bad_rows,
                "archives": position.spans.len(),
                "missing": position.missing,
            });
            (stream, value)
        })
        .collect();
    Ok(serde_json::to_string_pretty(&json!({
        "generation": manifest.generation,
        "rows": manifest.rows(),
        "bad_rows": manifest.bad_rows(),
        "bytes": manifest.bytes(),
        "files": manifest.files().count(),
        "archives": manifest.archives,
        "damage": snapshot.damage(),
        "streams": streams,
    }))?)
}
