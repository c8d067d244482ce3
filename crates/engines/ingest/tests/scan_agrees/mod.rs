//! The scanner and the slow parser must make the same of any bytes. The body of the fuzz target
//! `scan` and of the tests in `scanner.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use dyno_ingest::contract::band_of;
use dyno_ingest::scan::{Block, Columns, Scanner, Strings};

use super::oracle::{Row, parse_lines};

/// Panics where they differ. The bytes are cut into blocks of whole lines, as a loader does it.
pub fn check(bytes: &[u8], block_bytes: usize) {
    let expected = parse_lines(bytes);
    let mut scanner = Scanner::default();
    let mut bad = Vec::new();
    for block in blocks(bytes, block_bytes) {
        scanner.scan(&Block::from_text(block), &mut |row| {
            let raw = row.raw.strip_suffix(b"\r").unwrap_or(row.raw);
            assert!(!row.reason.is_empty());
            bad.push((row.line, raw.to_vec()));
        });
    }
    bad.sort();
    let expected_bad: Vec<(u64, Vec<u8>)> = expected
        .bad
        .into_iter()
        .map(|bad| (bad.line, bad.raw))
        .collect();
    assert_eq!(bad, expected_bad, "bad rows");
    assert_eq!(
        scanner.blank_lines(),
        expected.blank.len() as u64,
        "blank lines"
    );
    let rows = rows(&scanner.columns);
    assert_eq!(rows.len(), expected.rows.len(), "rows");
    for (row, (line, expected)) in rows.iter().zip(&expected.rows) {
        assert_eq!(row, expected, "line {line}");
    }
}

/// Pieces that end behind a line feed, each as short as `block_bytes` allows.
fn blocks(bytes: &[u8], block_bytes: usize) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let from = block_bytes.clamp(1, rest.len()) - 1;
        let end = rest[from..].iter().position(|&b| b == b'\n');
        let (block, after) = rest.split_at(end.map_or(rest.len(), |end| from + end + 1));
        blocks.push(block);
        rest = after;
    }
    blocks
}

fn rows(columns: &Columns) -> Vec<Row> {
    let words = |strings: &Strings| -> Vec<String> {
        strings
            .iter()
            .map(|word| String::from_utf8(word.to_vec()).unwrap())
            .collect()
    };
    let d = &columns.dictionaries;
    let (reporters, reporter_grids) = (words(&d.reporter), words(&d.reporter_grid));
    let (callsigns, grids, versions) = (words(&d.callsign), words(&d.grid), words(&d.version));
    (0..columns.len())
        .map(|i| {
            let frequency = d.frequency.values()[columns.frequency[i] as usize];
            Row {
                id: columns.id[i],
                timestamp: columns.timestamp[i],
                reporter: reporters[columns.reporter[i] as usize].clone(),
                reporter_grid: reporter_grids[columns.reporter_grid[i] as usize].clone(),
                snr: columns.snr[i],
                frequency,
                callsign: callsigns[columns.callsign[i] as usize].clone(),
                grid: grids[columns.grid[i] as usize].clone(),
                power: columns.power[i],
                drift: columns.drift[i],
                distance: columns.distance[i],
                azimuth: columns.azimuth[i],
                band: band_of(frequency),
                mode: "WSPR".to_owned(),
                version: versions[columns.version[i] as usize].clone(),
                code: columns.code[i],
                column_count: 15,
            }
        })
        .collect()
}
