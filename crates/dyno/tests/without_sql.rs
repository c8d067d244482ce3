//! `dyno run` where the SQL engine is not beside the program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A folder with the program and nothing beside it, where it looks for the SQL engine.
fn alone() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::hard_link(env!("CARGO_BIN_EXE_dyno"), folder.path().join("dyno")).unwrap();
    folder
}

/// Runs the program that is alone in `folder`, with its caches there.
fn dyno(folder: &Path, words: &[&str]) -> (Output, String) {
    let output = Command::new(folder.join("dyno"))
        .args(words)
        .env("HOME", folder)
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME")
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn a_suite_that_can_do_nothing_without_it_is_refused_before_anything_is_measured() {
    let folder = alone();
    let (output, said) = dyno(folder.path(), &["run", "wspr-queries", "--tiny"]);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let refusal = "dyno: wspr-queries: no case can run without dyno-sql: the SQL engine ";
    assert!(said.contains(refusal), "{said}");
    assert!(said.contains("cargo build --release -p dyno-sql"), "{said}");
    assert!(!folder.path().join("runs").exists(), "a record was made");
    let data = folder.path().join(".cache/dynolab/data");
    assert!(!data.exists(), "data was made");
}

#[test]
fn cases_that_will_fail_without_it_are_named_and_the_others_run() {
    let folder = alone();
    let line = "run tpch --tiny --case tbl-null-1 --case parquet-snappy-1";
    let words: Vec<&str> = line.split(' ').collect();
    let (output, said) = dyno(folder.path(), &words);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let named = "tpch: cases that will fail without dyno-sql: parquet-snappy-1; the SQL engine ";
    assert!(said.contains(named), "{said}");
    assert!(folder.path().join("runs").is_dir(), "{said}");
}

/// Among several suites it is left out, as one is for which the machine lacks something else.
#[test]
fn suites_that_can_do_nothing_without_it_are_left_out_and_nothing_is_measured_for_them() {
    let folder = alone();
    let (output, said) = dyno(folder.path(), &["run", "wspr-queries", "sage", "--tiny"]);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for suite in ["wspr-queries", "sage"] {
        let left_out = format!("{suite}: left out: the SQL engine ");
        assert!(said.contains(&left_out), "{said}");
    }
    let refusal = "dyno: nothing can be run: every suite was left out";
    assert!(said.contains(refusal), "{said}");
    assert!(!folder.path().join("runs").exists(), "a record was made");
}
