//! `dyno ingest query`, `serve` and `features` pass to the SQL engine what they were given.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Stands in for the SQL engine and prints its arguments, a line each.
const STAND_IN: &str = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n";

/// A folder with the program, the stand-in beside it, and a table `spots`.
fn with_stand_in() -> (tempfile::TempDir, impl Fn(&[&str]) -> String) {
    // The program looks for the SQL engine beside itself, so it needs a folder of its own.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = folder.path().join("dyno");
    fs::hard_link(env!("CARGO_BIN_EXE_dyno"), &program).unwrap();
    let engine = folder.path().join("dyno-sql");
    fs::write(&engine, STAND_IN).unwrap();
    fs::set_permissions(&engine, Permissions::from_mode(0o755)).unwrap();
    let at = folder.path().to_owned();
    let dyno = move |words: &[&str]| {
        let mut command = Command::new(&program);
        let output = command.args(words).current_dir(&at).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    dyno(&["ingest", "gen", "--rows", "10", "--out", "archives"]);
    let archive = "archives/wsprspots-2023-01.csv.gz";
    dyno(&["ingest", "load", archive, "--into", "spots"]);
    (folder, dyno)
}

#[test]
fn a_statement_that_begins_with_a_comment_is_not_taken_for_a_flag() {
    let (_folder, dyno) = with_stand_in();
    let statement = "-- how many?\nSELECT count(*) FROM spots";
    let passed = dyno(&["ingest", "query", "spots", "--", statement]);
    let behind_the_flags = passed.split_once("\n--\n").map(|(_, rest)| rest);
    let expected = format!("spots\n{statement}\n");
    assert_eq!(behind_the_flags, Some(&*expected), "{passed}");
}

#[test]
fn a_training_set_is_made_with_what_was_asked_for() {
    let (_folder, dyno) = with_stand_in();
    let set = ["ingest", "features", "spots", "--out", "set.parquet"];
    assert_eq!(
        dyno(&set),
        "features\n--format\nparquet\n--memory\n1073741824\n--out=set.parquet\n--\nspots\n"
    );
    let flags = "--out=-odd.arrow --format arrow --solar spots --threads 3 --memory 64MiB --json";
    let flags = flags.split(' ');
    let words: Vec<&str> = ["ingest", "features"].into_iter().chain(flags).collect();
    let words = [&words[..], &["spots"]].concat();
    assert_eq!(
        dyno(&words),
        "features\n--format\narrow\n--memory\n67108864\n--out=-odd.arrow\n--solar=spots\n\
         --threads\n3\n--json\n--\nspots\n"
    );
}

#[test]
fn a_server_is_started_with_what_was_asked_for() {
    let (_folder, dyno) = with_stand_in();
    let flags = "--pg 127.0.0.1:0 --time-limit 1500ms --max-rows 10 --threads 3 --memory 64MiB \
                 --token-file=-odd --log-level warn";
    let words: Vec<&str> = ["ingest", "serve", "spots"]
        .into_iter()
        .chain(flags.split_whitespace())
        .collect();
    assert_eq!(
        dyno(&words),
        "serve\n--memory\n67108864\n--time-limit-ms\n1500\n--max-rows\n10\n--max-statements\n8\n\
         --max-connections\n256\n--threads\n3\n--pg\n127.0.0.1:0\n--token-file=-odd\n\
         --log-level\nwarn\n--log-format\ntext\n--\nspots\n"
    );
}
