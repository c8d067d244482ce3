//! `dyno ingest query` passes a statement to the SQL engine as it is.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Stands in for the SQL engine and prints its arguments, a line each.
const STAND_IN: &str = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n";

#[test]
fn a_statement_that_begins_with_a_comment_is_not_taken_for_a_flag() {
    // The program looks for the SQL engine beside itself, so it needs a folder of its own.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = folder.path().join("dyno");
    fs::hard_link(env!("CARGO_BIN_EXE_dyno"), &program).unwrap();
    let engine = folder.path().join("dyno-sql");
    fs::write(&engine, STAND_IN).unwrap();
    fs::set_permissions(&engine, Permissions::from_mode(0o755)).unwrap();
    let dyno = |words: &[&str]| {
        let mut command = Command::new(&program);
        let output = command.args(words).current_dir(folder.path()).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    dyno(&["ingest", "gen", "--rows", "10", "--out", "archives"]);
    let archive = "archives/wsprspots-2023-01.csv.gz";
    dyno(&["ingest", "load", archive, "--into", "spots"]);
    let statement = "-- how many?\nSELECT count(*) FROM spots";
    let passed = dyno(&["ingest", "query", "spots", "--", statement]);
    let behind_the_flags = passed.split_once("\n--\n").map(|(_, rest)| rest);
    let expected = format!("spots\n{statement}\n");
    assert_eq!(behind_the_flags, Some(&*expected), "{passed}");
}
