//! Archives with planted oddities: each is in the table as it should be or in quarantine with its
//! line and the reason; every other row is what the slow parser makes of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;
mod planted_list;
mod table_of;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use dyno_ingest::Error;
use dyno_ingest::generate::{Generator, Outcome as Expected, Planted};
use dyno_ingest::load::{ArchiveReport, Options, Outcome};
use dyno_ingest::table::Snapshot;
use oracle::{LINE_BYTES_MAX, Parsed, Row, parse_lines};
use planted_list::as_expected;
use serde_json::Value;
use table_of::{failure, file, files_in, generate, gunzip, lenient, load_file, loaded_rows, rows};

/// Line to class of the reason and raw bytes.
type Quarantined = BTreeMap<u64, (&'static str, Vec<u8>)>;

/// What a quarantine file has.
fn quarantined(path: &Path, source: &Path) -> Quarantined {
    let text = fs::read_to_string(path).unwrap();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["source"], source.to_str().unwrap());
        let raw = match (object["raw"].as_str(), object["raw_hex"].as_str()) {
            (Some(text), None) => text.as_bytes().to_vec(),
            (None, Some(hex)) => (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect(),
            both => panic!("one form of the raw bytes: {both:?}"),
        };
        let class = class_of(object["reason"].as_str().unwrap());
        assert_eq!(object["cut"] == true, class == "long-line");
        let before = found.insert(object["line"].as_u64().unwrap(), (class, raw));
        assert_eq!(before, None, "a line is in quarantine once");
    }
    found
}

fn class_of(reason: &str) -> &'static str {
    let classes = [
        ("the line has more than", "long-line"),
        ("its quote is never closed", "quote"),
        ("text follows its closing quote", "quote"),
        ("fields, not 15", "field-count"),
        ("is not an integer of type", "number"),
        ("is not a number of MHz", "number"),
        ("is not UTF-8", "utf8"),
    ];
    let found = classes.iter().find(|(words, _)| reason.contains(words));
    found.unwrap_or_else(|| panic!("no class has {reason:?}")).1
}

#[test]
fn every_planted_row_is_kept_as_expected_or_in_quarantine() {
    for (seed, rate, workers) in [(3, 0.02, 1), (4, 0.1, 2), (5, 0.3, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let generator = Generator {
            rows: 9_000,
            quirks: rate,
            seed,
            ..Generator::default()
        };
        let archive = generate(&generator, folder.path()).remove(0);
        let table = folder.path().join("table");
        let options = Options {
            workers,
            ..lenient()
        };
        let report = load_file(&archive, &table, &options);
        let list = planted_list::beside(&archive);
        let garbage = check_garbage(&list, &archive, &report);
        let parsed = parse_lines(&gunzip(&archive, garbage));
        check_counts(&parsed, &report);
        let kept = check_rows(&parsed, rows(&table));
        let aside = check_quarantine(&parsed, &table, &archive);
        for planted in &list {
            match &planted.outcome {
                Expected::Kept { row } => {
                    assert_eq!(&as_expected(&kept[&planted.line]), row, "{planted:?}");
                }
                Expected::Bad { reason } => {
                    assert_eq!(aside[&planted.line].0, reason, "{planted:?}");
                }
                Expected::Blank | Expected::Garbage { .. } => {}
            }
        }
    }
}

/// The warning names the file, the place and the length of what follows the last member.
fn check_garbage(list: &[Planted], archive: &Path, report: &ArchiveReport) -> u64 {
    let Some(Expected::Garbage { offset, bytes }) = list.last().map(|p| p.outcome.clone()) else {
        panic!("the garbage is listed last");
    };
    let [warning] = &report.warnings[..] else {
        panic!("{:?}", report.warnings);
    };
    let (offset, length) = (offset.to_string(), bytes.to_string());
    for word in [archive.to_str().unwrap(), &offset, &length] {
        assert!(warning.contains(word), "{warning}");
    }
    bytes
}

fn check_counts(parsed: &Parsed, report: &ArchiveReport) {
    let Outcome::Loaded {
        rows,
        bad_rows,
        blank_lines,
        source_bytes,
        ..
    } = report.outcome
    else {
        panic!("{:?}", report.outcome);
    };
    assert_eq!(rows + bad_rows, 9_000);
    assert_eq!(rows, parsed.rows.len() as u64);
    assert_eq!(bad_rows, parsed.bad.len() as u64);
    assert_eq!(blank_lines, parsed.blank.len() as u64);
    assert_eq!(source_bytes, fs::metadata(&report.path).unwrap().len());
}

/// The table's rows, which are the parser's in their order, by the line that each came from.
fn check_rows(parsed: &Parsed, in_table: Vec<Row>) -> HashMap<u64, Row> {
    assert_eq!(in_table.len(), parsed.rows.len());
    let pairs = parsed.rows.iter().zip(in_table);
    pairs
        .map(|((line, expected), row)| {
            assert_eq!(row, *expected, "line {line}");
            (*line, row)
        })
        .collect()
}

fn check_quarantine(parsed: &Parsed, table: &Path, archive: &Path) -> Quarantined {
    let snapshot = Snapshot::open(table).unwrap();
    let of_archive = &snapshot.manifest().archives["wspr/2023-01"];
    assert_eq!(of_archive.bad_rows, parsed.bad.len() as u64);
    let path = table.join(of_archive.quarantine.as_ref().unwrap());
    let aside = quarantined(&path, archive);
    assert_eq!(aside.len(), parsed.bad.len());
    for bad in &parsed.bad {
        let (class, raw) = &aside[&bad.line];
        assert_eq!(*class, bad.reason.name(), "line {}", bad.line);
        let kept = bad.raw.len().min(LINE_BYTES_MAX);
        let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
        assert!(raw == &bad.raw[..kept], "line {}", bad.line);
    }
    aside
}

#[test]
fn the_limit_of_bad_rows_decides_and_a_rejected_quarantine_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let good = "1,1672531200,DK6UG,JN49cm,-21,14.097037,TA4/G8SCU,KM56,23,-1,2345,297,14,2.6.1,0\n";
    let text = good.repeat(71) + &"no spot\n".repeat(29);
    let archive = file(folder.path(), "wsprspots-2023-01.csv", text.as_bytes());
    let with = |max_bad| Options {
        max_bad,
        ..lenient()
    };

    load_file(
        &file(folder.path(), "other.csv", good.as_bytes()),
        &table,
        &with(0.0),
    );
    let before = files_in(&table);
    let report = load_file(&archive, &table, &with(0.28));
    let Outcome::Failed(error) = &report.outcome else {
        panic!("{report:?}");
    };
    let Error::TooManyBad {
        bad,
        rows,
        allowed,
        quarantine,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((*bad, *rows, *allowed), (29, 100, 28));
    let said = error.to_string();
    assert!(said.contains(quarantine.to_str().unwrap()), "{said}");
    let first = "the first is line 72: it has 1 fields, not 15";
    assert!(said.contains(first), "{said}");
    assert_eq!(quarantined(quarantine, &archive).len(), 29);
    let mut after = files_in(&table);
    let kept = quarantine.strip_prefix(&table).unwrap().to_str().unwrap();
    assert!(after.remove(kept).is_some());
    assert_eq!(after, before, "the table is as it was");

    let report = load_file(&archive, &table, &with(0.29));
    assert_eq!(loaded_rows(&report), 71);
    assert!(quarantine.exists(), "a person removes it");
}

/// Something else than an archive is refused as such, with the reason of its first line.
#[test]
fn a_file_without_a_good_row_is_not_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let text = "# Dynolab\n\nData engines, and the lab.\n";
    let archive = file(folder.path(), "README.md", text.as_bytes());
    let options = Options {
        max_bad: 0.001,
        ..lenient()
    };
    let said = failure(&load_file(&archive, &table, &options));
    let expected = "it is not an archive of wspr: 2 of 2 rows are bad; the first is line 1: it has 1 fields, not 15";
    assert!(said.contains(expected), "{said}");
}

/// A line that is one byte too long, with a carriage return where it is cut.
#[test]
fn a_long_line_is_bad_wherever_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let good = "1,1672531200,DK6UG,JN49cm,-21,14.097037,TA4/G8SCU,KM56,23,-1,2345,297,14,2.6.1,0";
    let padded = |bytes: usize| {
        let call = "A".repeat(bytes - good.len() + "TA4/G8SCU".len());
        good.replace("TA4/G8SCU", &call)
    };
    let longest = padded(LINE_BYTES_MAX);
    for (at, (text, expected)) in [
        (format!("{longest}\r\n"), 1),
        (format!("{}\n", padded(LINE_BYTES_MAX + 1)), 0),
        (format!("{longest}\r{}\n{good}\n", "x".repeat(600_000)), 1),
        (format!("{longest}xx{}", "x".repeat(600_000)), 0),
        (format!("{good}\n{}\r\n{good}", "y".repeat(300_000)), 2),
    ]
    .into_iter()
    .enumerate()
    {
        let parsed = parse_lines(text.as_bytes());
        assert_eq!(parsed.rows.len(), expected, "case {at}");
        let table = folder.path().join(format!("table-{at}"));
        let archive = file(folder.path(), "long.csv", text.as_bytes());
        let report = load_file(&archive, &table, &lenient());
        assert_eq!(loaded_rows(&report), expected as u64, "case {at}");
        let expected: Vec<Row> = parsed.rows.into_iter().map(|(_, row)| row).collect();
        assert!(rows(&table) == expected, "case {at}");
        let snapshot = Snapshot::open(&table).unwrap();
        let aside = snapshot.manifest().archives["long"].bad_rows;
        assert_eq!(aside, parsed.bad.len() as u64, "case {at}");
    }
}
