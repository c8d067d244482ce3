//! `dyno run --why`: experiments on a real workload.

use std::fs;
use std::process::Command;

use dyno_record::{Arm, Outcome, Role, RunDir, latest_run};

#[test]
fn a_case_runs_with_one_resource_changed_at_a_time() {
    let home = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .args(["run", "k2", "--tiny", "--case", "transport", "--why"])
        .env("HOME", home.path())
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME")
        .current_dir(home.path())
        .output()
        .expect("dyno starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let dir = latest_run(&home.path().join("runs"), None).expect("a run");
    let stored = RunDir::open(&dir).expect("a record");
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
}
