//! `dyno ingest status`: what is in a table.

use std::path::Path;

use dyno_ingest::table::{Archive, Snapshot};
use dyno_report::quantity;
use serde_json::json;

use crate::args::StatusArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &StatusArgs) -> anyhow::Result<Exit> {
    let snapshot = Snapshot::open(&args.table)?;
    let text = if args.json {
        as_json(&snapshot)?
    } else {
        as_text(&snapshot, &args.table)
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
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
    for (name, archive) in &manifest.archives {
        let earliest = archive.files.iter().map(|file| file.time_min_s).min();
        let latest = archive.files.iter().map(|file| file.time_max_s).max();
        let day = |seconds: Option<u64>| seconds.map_or(String::new(), dyno_suite::rfc3339);
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
    let rows = manifest.rows();
    format!(
        "{table}\n{}: {rows} rows in {} files of {} archives, {} ({:.1} bytes a row), \
         {} rows in quarantine, generation {}",
        path.display(),
        manifest.files().count(),
        manifest.archives.len(),
        quantity(manifest.bytes() as f64, "B"),
        manifest.bytes() as f64 / rows.max(1) as f64,
        manifest.bad_rows(),
        manifest.generation,
    )
}

fn as_json(snapshot: &Snapshot) -> anyhow::Result<String> {
    let manifest = snapshot.manifest();
    Ok(serde_json::to_string_pretty(&json!({
        "generation": manifest.generation,
        "rows": manifest.rows(),
        "bad_rows": manifest.bad_rows(),
        "bytes": manifest.bytes(),
        "files": manifest.files().count(),
        "archives": manifest.archives,
    }))?)
}
