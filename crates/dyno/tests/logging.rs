//! What commands that stay log, at which level and in which form.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Loads a folder with a month of spots and a file that is not an archive.
fn watch_once(home: &Path, into: &str, more: &[&str], stderr: Stdio) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command
        .current_dir(home)
        .args(["ingest", "watch", "in", "--once", "--into", into])
        .args(["--settle", "10ms", "--every", "10ms"])
        .args(more);
    command.stderr(stderr).output().unwrap()
}

fn folder() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let status = Command::new(assert_cmd::cargo::cargo_bin!("dyno"))
        .current_dir(home.path())
        .args([
            "ingest", "gen", "--rows", "500", "--months", "1", "--out", "in",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    fs::write(home.path().join("in/letter.txt"), "Dear all,\n").unwrap();
    home
}

#[test]
fn a_line_has_a_time_and_a_level_and_the_level_chooses_lines() {
    let home = folder();
    let ran = watch_once(home.path(), "a", &[], Stdio::piped());
    let log = String::from_utf8(ran.stderr).unwrap();
    let line = log.lines().find(|line| line.contains("loaded wspr/"));
    let line = line.unwrap_or_else(|| panic!("nothing was loaded: {log}"));
    assert!(line.contains("Z  INFO loaded wspr/"), "{line}");
    assert!(line.contains("rows=500"), "{line}");
    assert!(!line.contains('\x1b'), "a pipe gets no colours: {line}");
    assert!(log.contains("Z ERROR not loaded: "), "{log}");

    let ran = watch_once(home.path(), "b", &["--log-level", "error"], Stdio::piped());
    let log = String::from_utf8(ran.stderr).unwrap();
    assert!(log.lines().all(|line| line.contains(" ERROR ")), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");

    let ran = watch_once(home.path(), "c", &["--log-level", "off"], Stdio::piped());
    assert_eq!(String::from_utf8(ran.stderr).unwrap(), "");
}

#[test]
fn json_is_an_object_a_line_with_the_fields_of_the_event() {
    let home = folder();
    let ran = watch_once(home.path(), "a", &["--log-format", "json"], Stdio::piped());
    let log = String::from_utf8(ran.stderr).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .collect();
    let loaded = lines.iter().find(|line| line["rows"] == 500);
    let loaded = loaded.unwrap_or_else(|| panic!("nothing was loaded: {log}"));
    assert_eq!(loaded["level"], "INFO");
    assert!(loaded["timestamp"].as_str().unwrap().ends_with('Z'));
    assert!(
        loaded["message"]
            .as_str()
            .unwrap()
            .starts_with("loaded wspr/")
    );
}

#[test]
fn a_log_that_cannot_be_written_does_not_end_the_work() {
    let home = folder();
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let ran = watch_once(home.path(), "a", &[], full().into());
    // The file that is not an archive makes a watch with --once exit 1, and nothing else does.
    assert_eq!(ran.status.code(), Some(1), "{}", ran.status);
    let summary = String::from_utf8(ran.stdout).unwrap();
    assert!(summary.contains("1 files loaded"), "{summary}");
}
