//! The list of what was planted in an archive, and rows of the slow parser in the form that it has
//! there.

use std::fs;
use std::path::Path;

use dyno_ingest::generate::{ExpectedRow, Planted};

use super::oracle::Row;

/// The list that lies beside an archive.
pub fn beside(archive: &Path) -> Vec<Planted> {
    let list = archive
        .to_str()
        .unwrap()
        .replace(".csv.gz", ".planted.ndjson");
    let text = fs::read_to_string(list).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What a list says of a row that is kept.
pub fn as_expected(row: &Row) -> ExpectedRow {
    let row = row.clone();
    ExpectedRow {
        id: row.id,
        timestamp: row.timestamp,
        reporter: row.reporter,
        reporter_grid: row.reporter_grid,
        snr: row.snr,
        frequency: row.frequency,
        callsign: row.callsign,
        grid: row.grid,
        power: row.power,
        drift: row.drift,
        distance: row.distance,
        azimuth: row.azimuth,
        band: row.band,
        mode: row.mode,
        version: row.version,
        code: row.code,
        column_count: row.column_count,
    }
}
