//! What a collector that was killed leaves, and what the next one makes of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read;
use std::path::Path;

use dyno_ingest_collect::{CollectError, Hours};
use dyno_ingest_feeds::psk::Capture;
use tempfile::TempDir;

const HOUR_MS: i64 = 3_600_000;
/// 2026-01-31T12:00:00Z.
const NOON_MS: i64 = 1_769_860_800_000;

fn line(raw: &str) -> Capture {
    Capture {
        rx: "x".to_owned(),
        raw: Some(raw.to_owned()),
        ..Capture::default()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name != "collector.lock");
    names.sort();
    names
}

fn lines(path: &Path) -> Vec<String> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    let raw = |line: &str| serde_json::from_str::<Capture>(line).unwrap().raw.unwrap();
    text.lines().map(raw).collect()
}

/// As after kill -9: nothing is dropped in order.
fn abandon(mut hours: Hours) {
    hours.flush().unwrap();
    std::mem::forget(hours);
}

#[test]
fn an_hour_that_goes_on_is_taken_up_behind_its_last_whole_line() {
    let dir = TempDir::new().unwrap();
    let (mut hours, recovery) = Hours::open(dir.path(), NOON_MS).unwrap();
    assert_eq!(recovery.files, 0);
    hours.append(&line("one"), NOON_MS).unwrap();
    drop(hours);
    let open = dir.path().join("pskr-2026-01-31T12.jsonl.open");
    let mut text = fs::read(&open).unwrap();
    text.extend(b"{\"rx\":\"torn");
    fs::write(&open, text).unwrap();
    let (mut hours, recovery) = Hours::open(dir.path(), NOON_MS + 1).unwrap();
    assert_eq!((recovery.files, recovery.torn_bytes), (1, 11));
    hours.append(&line("two"), NOON_MS + 2).unwrap();
    let done = hours.close().unwrap().unwrap();
    assert_eq!(lines(&done), ["one", "two"]);
    assert_eq!(names(dir.path()), ["pskr-2026-01-31T12.jsonl.gz"]);
}

#[test]
fn hours_that_are_over_are_compressed_and_none_is_written_over() {
    let dir = TempDir::new().unwrap();
    for raw in ["one", "two", "three"] {
        let (mut hours, _) = Hours::open(dir.path(), NOON_MS).unwrap();
        hours.append(&line(raw), NOON_MS).unwrap();
        hours.close().unwrap();
    }
    let expected = [
        "pskr-2026-01-31T12-2.jsonl.gz",
        "pskr-2026-01-31T12-3.jsonl.gz",
        "pskr-2026-01-31T12.jsonl.gz",
    ];
    assert_eq!(names(dir.path()), expected);
    assert_eq!(lines(&dir.path().join(expected[2])), ["one"]);
    assert_eq!(lines(&dir.path().join(expected[1])), ["three"]);
}

/// A table replaces an archive by a later one of the same name, and a file may be removed once the
/// table has it.
#[test]
fn the_name_of_a_file_that_was_removed_is_not_used_again() {
    let dir = TempDir::new().unwrap();
    // After 13 o'clock the clock goes back.
    let parts = [
        (NOON_MS, "pskr-2026-01-31T12.jsonl.gz"),
        (NOON_MS + 1, "pskr-2026-01-31T12-2.jsonl.gz"),
        (NOON_MS + HOUR_MS, "pskr-2026-01-31T13.jsonl.gz"),
        (NOON_MS + 2, "pskr-2026-01-31T12-3.jsonl.gz"),
    ];
    for (moment_ms, expected) in parts {
        let (mut hours, _) = Hours::open(dir.path(), moment_ms).unwrap();
        hours.append(&line(expected), moment_ms).unwrap();
        let done = hours.close().unwrap().unwrap();
        assert_eq!(done, dir.path().join(expected));
        assert_eq!(lines(&done), [expected]);
        fs::remove_file(done).unwrap();
    }
}

/// An earlier version left a file without its number, and a power cut the beginning of a line.
#[test]
fn numbers_are_found_behind_an_unfinished_one() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("pskr-2026-01-31T12.jsonl.gz"), "").unwrap();
    fs::write(dir.path().join("collector.lock"), "\npskr-2026-01-3").unwrap();
    for expected in [
        "pskr-2026-01-31T12-2.jsonl.gz",
        "pskr-2026-01-31T12-3.jsonl.gz",
    ] {
        let (mut hours, _) = Hours::open(dir.path(), NOON_MS).unwrap();
        hours.append(&line("one"), NOON_MS).unwrap();
        let done = hours.close().unwrap().unwrap();
        assert_eq!(done, dir.path().join(expected));
        fs::remove_file(done).unwrap();
    }
}

/// At each point of closing a file: the lines are there once, whatever was done already.
#[test]
fn a_kill_while_a_file_is_closed_neither_loses_nor_doubles_it() {
    for done in [false, true] {
        for partial in [false, true] {
            let dir = TempDir::new().unwrap();
            let (mut hours, _) = Hours::open(dir.path(), NOON_MS).unwrap();
            hours.append(&line("one"), NOON_MS).unwrap();
            let path = hours.close().unwrap().unwrap();
            let closing = dir.path().join("pskr-2026-01-31T12.jsonl.closing");
            let mut text = String::new();
            flate2::read::GzDecoder::new(fs::File::open(&path).unwrap())
                .read_to_string(&mut text)
                .unwrap();
            fs::write(&closing, text).unwrap();
            if !done {
                fs::remove_file(&path).unwrap();
            }
            if partial {
                fs::write(
                    dir.path().join("pskr-2026-01-31T12.jsonl.gz.partial"),
                    b"half",
                )
                .unwrap();
            }
            let (hours, recovery) = Hours::open(dir.path(), NOON_MS + HOUR_MS).unwrap();
            assert_eq!(recovery.files, 1);
            drop(hours);
            assert_eq!(lines(&path), ["one"]);
            let left = names(dir.path());
            assert!(
                left.iter()
                    .all(|name| !name.ends_with(".closing") && !name.ends_with(".open")),
                "{left:?}"
            );
        }
    }
}

#[test]
fn one_collector_a_folder() {
    let dir = TempDir::new().unwrap();
    let (hours, _) = Hours::open(dir.path(), NOON_MS).unwrap();
    assert!(matches!(
        Hours::open(dir.path(), NOON_MS),
        Err(CollectError::Busy { .. })
    ));
    drop(hours);
    assert!(Hours::open(dir.path(), NOON_MS).is_ok());
}

#[test]
fn a_clock_that_goes_back_reopens_no_hour() {
    let dir = TempDir::new().unwrap();
    let (mut hours, _) = Hours::open(dir.path(), NOON_MS).unwrap();
    hours.append(&line("one"), NOON_MS).unwrap();
    hours.append(&line("two"), NOON_MS + HOUR_MS).unwrap();
    hours.append(&line("three"), NOON_MS).unwrap();
    hours.close().unwrap();
    assert_eq!(
        lines(&dir.path().join("pskr-2026-01-31T12.jsonl.gz")),
        ["one"]
    );
    assert_eq!(
        lines(&dir.path().join("pskr-2026-01-31T13.jsonl.gz")),
        ["two", "three"]
    );
}

#[test]
fn what_was_flushed_outlives_a_kill() {
    let dir = TempDir::new().unwrap();
    let (mut hours, _) = Hours::open(dir.path(), NOON_MS).unwrap();
    hours.append(&line("one"), NOON_MS).unwrap();
    abandon(hours);
    let text = fs::read_to_string(dir.path().join("pskr-2026-01-31T12.jsonl.open")).unwrap();
    assert!(text.contains("one") && text.ends_with('\n'));
}
