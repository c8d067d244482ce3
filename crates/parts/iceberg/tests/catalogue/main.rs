//! What readers find in the metadata of a table: after commits, after crashes, and where another
//! program has written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crashed;
mod history;
mod reader;
mod refused;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_formats::parquet_read::FileStatistics;
use dyno_iceberg::{Catalogue, Column, Commit, DataFile, Kind, Past, Result};
use dyno_sim::Disk;

const TABLE: &str = "/data/spots";

fn columns() -> Vec<Column> {
    let column = |id, name: &str, kind| Column {
        id,
        name: name.to_owned(),
        required: true,
        kind,
    };
    vec![
        column(1, "id", Kind::Long),
        column(2, "callsign", Kind::String),
    ]
}

fn open_at(disk: &Disk, table: &str) -> Result<Catalogue> {
    Catalogue::open(Arc::new(disk.clone()), Path::new(table), columns())
}

fn open(disk: &Disk) -> Result<Catalogue> {
    open_at(disk, TABLE)
}

/// The state with these files, each of ten rows.
fn state(generation: u64, files: &[&str]) -> Commit {
    let file = |name: &&str| DataFile {
        path: PathBuf::from(TABLE).join("data").join(name),
        rows: 10,
        bytes: 1000,
    };
    Commit {
        generation,
        at_ms: 1_700_000_000_000 + generation as i64,
        files: files.iter().map(file).collect(),
        past: Past::Kept,
    }
}

fn commit(catalogue: &mut Catalogue, state: &Commit) -> Result<bool> {
    catalogue.commit(state, |_| {
        Ok(FileStatistics {
            rows: 10,
            columns: Vec::new(),
        })
    })
}

/// The locations of files with these names.
fn locations(names: &[&str]) -> Vec<String> {
    let location = |name: &&str| format!("file://{TABLE}/data/{name}");
    names.iter().map(location).collect()
}
