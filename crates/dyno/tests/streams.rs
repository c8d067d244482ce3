//! Standard output and standard error that are closed or full.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

fn dyno(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A device that is always full.
fn full() -> Stdio {
    OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

/// A pipe that the reader has left.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_message_that_cannot_be_written_changes_no_exit_code() {
    for stderr in [full, closed] {
        let status = dyno(&["run", "nosuch"]).stderr(stderr()).status().unwrap();
        assert_eq!(status.code(), Some(2), "{status}");
        let status = dyno(&["no", "such"]).stderr(stderr()).status().unwrap();
        assert_eq!(status.code(), Some(2), "{status}");
    }
}

/// A reader that has seen enough is not a failure; a full disk under the output is one, and it is
/// said.
#[test]
fn output_that_is_closed_ends_quietly_and_output_that_is_full_is_an_error() {
    for arguments in [
        &["peers", "list"][..],
        &["completions", "bash"],
        &["--help"],
    ] {
        let output = dyno(arguments).stdout(closed()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), said.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );

        let output = dyno(arguments).stdout(full()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains("cannot write to stdout: No space left"),
            "{said}"
        );
    }
}
