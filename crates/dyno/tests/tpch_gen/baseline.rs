//! The mode baseline, which another program writes for this one.

use std::fs;
use std::process::Command;

use crate::{generate, is_final, sql_engine};

#[test]
fn without_the_other_program_the_command_says_how_to_get_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let alone = folder.path().join("dyno");
    let program = assert_cmd::cargo::cargo_bin!("dyno");
    if fs::hard_link(program, &alone).is_err() {
        fs::copy(program, &alone).expect("a copy");
    }
    let job = "tpch gen --sf 0.01 --mode baseline --sink null";
    for format in ["parquet", "orc", "csv"] {
        let mut command = Command::new(&alone);
        command.args(job.split(' ')).args(["--format", format]);
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("cargo build --release -p dyno-sql"), "{said}");
    }
    // What is wrong with the job is said first, and TBL needs no library.
    let mut command = Command::new(&alone);
    command.args(job.split(' ')).args(["--page-version", "3"]);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("page-version"), "{said}");
    let mut command = Command::new(&alone);
    command.args(job.split(' ')).args(["--format", "tbl"]);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
}

#[test]
fn its_files_are_reported_kept_and_printed_like_those_of_other_modes() {
    if !sql_engine().is_file() {
        println!("skipped: files of the mode baseline: dyno-sql is not built");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display();
    for format in ["parquet", "orc", "csv"] {
        let words = format!(
            "--sf 0.01 --mode baseline --tables nation,orders --format {format} --out {out}/{format} --json"
        );
        for kept in [false, true] {
            let output = generate(&words).output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{format}: {said}");
            let report: serde_json::Value =
                serde_json::from_slice(&output.stdout).expect("it prints JSON");
            let rows = if kept { 0 } else { 15_000 + 25 };
            assert_eq!(report["rows"], rows, "{format}");
            assert_eq!(report["files"][0]["kept"], kept, "{format}");
        }
        let files = crate::files(&folder.path().join(format));
        let files: Vec<_> = files.keys().filter(|name| is_final(name)).collect();
        assert_eq!(files.len(), 2, "{files:?}");
    }
    let words = "--sf 0.01 --mode baseline --tables nation --format csv --sink stdout";
    let output = generate(words).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("n_nationkey,"), "{text}");
    assert_eq!(text.lines().count(), 1 + 25);
}
