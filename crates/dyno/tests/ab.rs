//! `dyno ab`: exit codes, forms of output, revisions of a repository.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A command that counts to `n` in the shell.
fn counting(n: u32) -> String {
    format!("i=0; while [ $i -lt {n} ]; do i=$((i + 1)); done")
}

fn ab(dir: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .current_dir(dir)
        .arg("ab")
        .args(arguments)
        .output();
    output.expect("dyno runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_slower_command_exits_1_in_every_form() {
    let dir = tempfile::tempdir().expect("a folder");
    let (old, new) = (counting(10_000), counting(40_000));
    let runs = ["--runs", "8"];
    let plain = ab(dir.path(), &[&[&*old, &new], &runs[..]].concat());
    assert_eq!(plain.status.code(), Some(1), "{plain:?}");
    let text = stdout(&plain);
    assert!(
        text.contains("8 blocks of OLD, NEW and OLD again"),
        "{text}"
    );
    assert!(text.contains("NEW takes "), "{text}");

    let json = ab(dir.path(), &[&[&*old, &new, "--json"], &runs[..]].concat());
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["answer"], "slower");
    assert_eq!(json["figures"][0]["name"], "wall time");
    assert!(json["figures"][0]["ratio"].as_f64().expect("a ratio") < 0.7);

    let markdown = ab(
        dir.path(),
        &[&[&*old, &new, "--markdown"], &runs[..]].concat(),
    );
    let text = stdout(&markdown);
    assert!(text.contains("\n| wall time | "), "{text}");

    let accepted = ab(
        dir.path(),
        &[&[&*old, &new, "--max-slowdown", "99%"], &runs[..]].concat(),
    );
    assert_eq!(
        accepted.status.code(),
        Some(1),
        "four times is more than 99%"
    );
}

#[test]
fn failures_and_misuse_exit_2() {
    let dir = tempfile::tempdir().expect("a folder");
    for (arguments, said) in [
        (&["true", "exit 3"][..], "`exit 3` exited with 3"),
        (&["true"], "required"),
        (&["true", "true", "--runs", "4"], "4 is not in 5..=10000"),
        (
            &["true", "true", "--git", "main"],
            "is not a range of revisions",
        ),
        (&["true", "true", "--git", "a..b"], "not a git repository"),
    ] {
        let output = ab(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[test]
fn two_revisions_are_built_and_measured_in_worktrees_that_go_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(dir.path())
            .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
            .args(arguments)
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        stdout(&output)
    };
    git(&["init", "--quiet"]);
    for n in [10_000, 40_000] {
        fs::write(dir.path().join("bench.sh"), counting(n)).expect("a file");
        git(&["add", "."]);
        git(&["commit", "--quiet", "-m", "a size"]);
    }
    let arguments = [
        "cp bench.sh built.sh",
        "sh built.sh",
        "--git",
        "HEAD~1..",
        "--runs",
        "8",
    ];
    let output = ab(dir.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = stdout(&output);
    assert!(text.contains("OLD: sh built.sh at HEAD~1"), "{text}");
    assert!(text.contains("NEW: sh built.sh at HEAD\n"), "{text}");
    assert_eq!(git(&["worktree", "list"]).lines().count(), 1);
    assert!(!dir.path().join("built.sh").exists());

    let broken = ab(dir.path(), &["exit 7", "true", "--git", "HEAD~1.."]);
    assert_eq!(broken.status.code(), Some(2), "{broken:?}");
    assert_eq!(git(&["worktree", "list"]).lines().count(), 1);
}
