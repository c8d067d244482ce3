//! Runs beside a load: what is recorded, and that no load outlives its run.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use dyno_record::{Arm, Outcome, RunDir, latest_run};

/// A run of one case that needs no other program.
fn dyno(home: &Path, load: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command
        .args([
            "run",
            "k2",
            "--tiny",
            "--case",
            "transport",
            "--beside",
            load,
        ])
        .env("HOME", home)
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME")
        .current_dir(home)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn every_system_runs_once_alone_and_once_beside_the_load() {
    let home = tempfile::tempdir().expect("a directory");
    for load in ["cpu", "memory", "disk"] {
        let output = dyno(home.path(), load).output().expect("dyno starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let dir = latest_run(&home.path().join("runs"), None).expect("a run");
        let stored = RunDir::open(&dir).expect("a record");
        assert_eq!(stored.run.beside.as_deref(), Some(load));
        let systems = &stored.run.plan.cases[0].systems;
        assert!(systems.len() > 1);
        for system in systems {
            for arm in [Arm::Main, Arm::Beside] {
                let there = |s: &&dyno_record::Sample| s.system == *system && s.arm == arm;
                let mut samples = stored.samples.iter().filter(there);
                let done = samples.all(|sample| sample.outcome == Outcome::Done);
                assert!(done, "{load}: {system} {arm:?}: {said}");
                assert_eq!(stored.samples.iter().filter(there).count(), 1);
            }
        }
        let report = fs::read_to_string(dir.join("report.md")).expect("a report");
        assert!(report.contains("## What the load beside the run costs"));
        assert!(report.contains(&format!("The load is: {load}.")));
        fs::remove_dir_all(home.path().join("runs")).expect("removed");
    }
}

#[test]
fn a_load_that_ends_is_an_error_that_names_it() {
    let home = tempfile::tempdir().expect("a directory");
    let load = "echo out of luck >&2; exit 3";
    let output = dyno(home.path(), load).output().expect("dyno starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(&format!("the load beside the run, `{load}`")),
        "{said}"
    );
    assert!(said.contains("out of luck"), "{said}");
}

/// The process id that the load wrote, once it runs.
fn loaded(file: &Path, run: &mut Child) -> String {
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n') {
            return pid.to_owned();
        }
        let ended = run.try_wait().expect("it can be asked");
        assert!(ended.is_none(), "the run ended before the load began");
        std::thread::yield_now();
    }
}

#[test]
fn a_load_is_gone_when_the_run_was_interrupted_or_killed() {
    for signal in ["-INT", "-KILL"] {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("pid");
        // A child of the shell, which knows nothing of the run.
        let load = format!(
            "cat /dev/zero > /dev/null & echo $! > {}; wait",
            file.display()
        );
        let mut run = dyno(home.path(), &load).spawn().expect("dyno starts");
        let pid = loaded(&file, &mut run);
        let mut kill = Command::new("kill");
        let sent = kill.args([signal, &run.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        run.wait_with_output().expect("it ends");
        // A process that has ended has no descriptors any more. The load sees the death of a run
        // that was killed within half a second.
        while Path::new("/proc").join(&pid).join("fd/1").exists() {
            std::thread::yield_now();
        }
    }
}
