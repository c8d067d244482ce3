//! What a run can be asked besides its figures: `--why` and `--flamegraph`, on a real workload.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_record::{Arm, Outcome, Role, RunDir, StoredRun, latest_run};
use dyno_suite::Profiler;

/// Runs one case with the flags after it; returns what was said, the directory of the record, and
/// the record.
fn run(home: &Path, flags: &[&str]) -> (String, PathBuf, StoredRun) {
    let output = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .args(["run", "k2", "--tiny", "--case", "transport"])
        .args(flags)
        .env("HOME", home)
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME")
        .current_dir(home)
        .output()
        .expect("dyno starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let dir = latest_run(&home.join("runs"), None).expect("a run");
    let stored = RunDir::open(&dir).expect("a record");
    (said, dir, stored)
}

#[test]
fn each_system_is_profiled_besides_its_samples() {
    if let Err(reason) = Profiler::find() {
        println!("skipped: dyno run --flamegraph: {reason}");
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let (said, dir, stored) = run(home.path(), &["--flamegraph"]);
    let case = &stored.run.plan.cases[0];
    let profiled: Vec<&String> = stored.profiles.iter().map(|one| &one.system).collect();
    let systems: Vec<&String> = case.systems.iter().collect();
    assert_eq!(profiled, systems, "{said}");
    // The names of the threads and of the functions of our program are known.
    let stacks = &stored.profiles[0].stacks;
    let ours = stacks.keys().filter(|stack| stack.contains("dyno_net::"));
    assert!(ours.count() > 0, "{stacks:?}");
    // The invocation under `perf` is not among the samples.
    let timed = format!("{} timed invocations", stored.samples.len());
    assert!(said.contains(&timed), "{said}");
    let page = fs::read_to_string(dir.join("report.html")).expect("a report");
    assert!(page.contains("Where dyno spends its processor time"));
}

#[test]
fn a_case_runs_with_one_resource_changed_at_a_time() {
    let home = tempfile::tempdir().expect("a directory");
    let (said, dir, stored) = run(home.path(), &["--why"]);
    let case = &stored.run.plan.cases[0];
    for system in ["window-halved", "window-doubled", "scratch-in-memory"] {
        assert_eq!(case.role(system), Role::Experiment, "{:?}", case.systems);
        let own = |s: &&dyno_record::Sample| s.system == system && s.arm == Arm::Main;
        let sample = stored.samples.iter().find(own).expect("a sample");
        assert_eq!(sample.outcome, Outcome::Done, "{system}: {said}");
    }
    assert_eq!(case.variants["window-halved"]["window"], 128);
    assert!(case.untried.contains_key("batch size"));
    // One block proves nothing, and the report says so.
    let report = fs::read_to_string(dir.join("report.md")).expect("a report");
    assert!(report.contains("## What bounds each figure"), "{report}");
    assert!(
        report.contains("what bounds transport: unproven"),
        "{report}"
    );
    assert!(report.contains("dyno run k2 --tiny --case transport --why"));
    // A continued run is asked the same, without being told so again.
    let output = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .args(["run", "--resume"])
        .arg(&dir)
        .env("HOME", home.path())
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME")
        .current_dir(home.path())
        .output()
        .expect("dyno starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let again = RunDir::open(&dir).expect("a record");
    assert_eq!(again.samples.len(), stored.samples.len());
}
