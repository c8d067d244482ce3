//! What is kept of a run that is interrupted, how it goes on in its own record, and what is removed
//! of one that was killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use assert_cmd::assert::OutputAssertExt;
use dyno_record::{Outcome, RunDir};

use crate::home::{dyno, has_sql, only_run, scratch_directories};

#[test]
fn what_is_complete_is_not_measured_again() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let words = [
        "run",
        "k2",
        "--tiny",
        "--case",
        "call-latency",
        "--set",
        "repeats=3",
    ];
    let quiet = dyno(home).args(words).args(["-q", "-o", "runs"]).assert();
    let quiet = String::from_utf8_lossy(&quiet.success().get_output().stderr).into_owned();
    assert!(!quiet.contains("invocations"), "{quiet}");
    let run = only_run(home);
    let samples = run.join("samples.ndjson");
    let whole = fs::read_to_string(&samples).expect("samples");
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 9, "three systems in three blocks");
    // One block and a sample of the next, with the beginning of a line that a crash has torn.
    let torn = format!("{}\n{}", lines[..4].join("\n"), &lines[4][..40]);
    fs::write(&samples, torn).expect("written");

    dyno(home)
        .args(["run", "--resume"])
        .arg(&run)
        .assert()
        .success();
    assert_eq!(only_run(home), run, "no other record is made");
    let stored = RunDir::open(&run).expect("a record");
    assert!(stored.run.finished_at.is_some());
    let now = fs::read_to_string(&samples).expect("samples");
    let now: Vec<&str> = now.lines().collect();
    assert_eq!(now.len(), 9);
    assert_eq!(now[..3], lines[..3], "the first block stays as it was");
    assert_ne!(
        now[3], lines[3],
        "the second had a part only and is run again"
    );
    let blocks: Vec<u32> = stored.samples.iter().map(|sample| sample.block).collect();
    assert_eq!(blocks, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    let in_order = stored.samples.is_sorted_by(|a, b| a.at_s <= b.at_s);
    assert!(in_order, "the clock goes on");
}

#[test]
fn a_run_of_another_definition_is_refused_by_name() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let words = ["run", "k2", "--tiny", "--case", "call-latency"];
    dyno(home).args(words).assert().success();
    let run = only_run(home);
    let description = run.join("run.json");
    let text = fs::read_to_string(&description).expect("a description");
    let before = fs::read(run.join("samples.ndjson")).expect("samples");
    for (from, to, reason) in [
        (
            "\"window\": 1",
            "\"window\": 2",
            "the definition of case call-latency is another one",
        ),
        (
            "\"fingerprint\": \"",
            "\"fingerprint\": \"0",
            "the machine was 0",
        ),
        (
            "\"git_revision\": \"",
            "\"git_revision\": \"0",
            "the revision was 0",
        ),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        fs::write(&description, text.replacen(from, to, 1)).expect("written");
        let refused = dyno(home)
            .args(["run", "--resume"])
            .arg(&run)
            .assert()
            .code(2);
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(said.contains(reason), "{said}");
        let now = fs::read(run.join("samples.ndjson")).expect("samples");
        assert_eq!(now, before, "nothing is changed");
    }
}

#[test]
fn a_run_whose_times_cannot_be_kept_ends_well_with_its_report() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    // A directory in the place of the file, which root cannot write either.
    fs::create_dir_all(home.join(".cache/dynolab/times.json")).expect("room");
    let words = ["run", "k2", "--tiny", "--case", "call-latency"];
    let ran = dyno(home).args(words).assert().success();
    let said = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
    assert!(
        said.contains("the times of this run are not kept") && said.contains("times.json"),
        "{said}"
    );
    assert!(only_run(home).join("report.html").is_file(), "{said}");
}

/// They once stayed in the cache for good.
#[test]
fn the_scratch_files_of_a_killed_process_are_removed_by_the_next_one() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let mut killed = dyno(home)
        .args(["limits", "--quick"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    while scratch_directories(home).is_empty() {
        let ended = killed.try_wait().expect("a child");
        assert_eq!(ended, None, "it ended before it could be killed");
        thread::sleep(Duration::from_millis(5));
    }
    killed.kill().expect("killed");
    killed.wait().expect("it ends");
    assert_eq!(scratch_directories(home).len(), 1);
    dyno(home).args(["limits", "--tiny"]).assert().success();
    let left = scratch_directories(home);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn ctrl_c_ends_a_run_and_keeps_what_was_measured() {
    // As a shell counts a program that Ctrl-C ended; 2 would say that it was asked wrongly.
    assert_kept(&["-INT"], 130);
}

/// A terminal that is lost sends it twice: by the shell, and by the kernel when the shell ends.
#[test]
fn a_hang_up_ends_a_run_and_keeps_what_was_measured() {
    assert_kept(&["-HUP", "-HUP"], 129);
}

/// Sends signals to a run, and fails unless it ends by itself with a record and a report.
fn assert_kept(signals: &[&str], code: i32) {
    if !has_sql() {
        println!(
            "skipped: a run that a signal ends: dyno-sql, which reads loads back, is not built"
        );
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let mut run = dyno(home.path())
        .args(["run", "wspr", "--tiny"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(run.stderr.take().expect("piped")).lines();
    let timing = lines.any(|line| line.expect("text").contains("load-csv-1: 1 system answers"));
    assert!(timing, "the run ended before it could be stopped");
    let pid = run.id().to_string();
    for signal in signals {
        let sent = Command::new("kill").args([*signal, pid.as_str()]).status();
        assert!(sent.expect("kill is there").success());
    }
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert_eq!(run.wait().expect("it ends").code(), Some(code), "{rest:?}");
    let left = scratch_directories(home.path());
    assert!(left.is_empty(), "{left:?}");
    assert!(
        rest.iter()
            .any(|line| line.contains("what was measured is kept")),
        "{rest:?}"
    );
    let record = only_run(home.path());
    assert!(record.join("report.html").is_file(), "{rest:?}");
    let stored = RunDir::open(&record).expect("a record");
    assert!(stored.run.finished_at.is_none());
    assert!(
        stored
            .samples
            .iter()
            .any(|sample| sample.outcome == Outcome::Done)
    );
}

/// As a pipe of ssh that breaks, or a pager that is left: the run goes on without being heard.
#[test]
fn a_run_whose_output_is_closed_ends_with_its_record_and_its_reports() {
    let home = tempfile::tempdir().expect("a directory");
    let line = "\"$0\" run wspr --tiny 2>&1 | head -n 3; exit ${PIPESTATUS[0]}";
    let output = Command::new("bash")
        .args(["-c", line])
        .arg(env!("CARGO_BIN_EXE_dyno"))
        .env("HOME", home.path())
        .env_remove("XDG_CACHE_HOME")
        .current_dir(home.path())
        .output()
        .expect("bash is there");
    // Without the SQL engine one case fails, and the run says so by its code.
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    let run = only_run(home.path());
    let stored = RunDir::open(&run).expect("a record");
    assert!(stored.run.finished_at.is_some(), "it ran to its end");
    let left = scratch_directories(home.path());
    assert!(left.is_empty(), "{left:?}");
    for name in ["report.md", "report.html", "report.xlsx", "report.json"] {
        assert!(run.join(name).metadata().expect(name).len() > 500, "{name}");
    }
}
