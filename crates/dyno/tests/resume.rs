//! A run that was interrupted goes on in its own record, one whose times cannot be kept has its
//! report all the same, and the scratch files of one that was killed are removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::thread;
use std::time::Duration;

use assert_cmd::Command;
use dyno_record::RunDir;

fn dyno(home: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command.env("HOME", home).current_dir(home);
    command
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME");
    command
}

fn only_run(home: &Path) -> PathBuf {
    let runs = fs::read_dir(home.join("runs")).expect("there are runs");
    let mut runs: Vec<PathBuf> = runs.map(|run| run.expect("readable").path()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

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

fn scratch_directories(home: &Path) -> Vec<String> {
    let entries = fs::read_dir(home.join(".cache/dynolab"))
        .into_iter()
        .flatten();
    let names = entries.map(|entry| entry.expect("readable").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("scratch-")).collect()
}

/// They once stayed in the cache for good.
#[test]
fn the_scratch_files_of_a_killed_process_are_removed_by_the_next_one() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let mut killed = process::Command::new(assert_cmd::cargo::cargo_bin!("dyno"))
        .env("HOME", home)
        .env_remove("XDG_CACHE_HOME")
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
    assert_eq!(scratch_directories(home), Vec::<String>::new());
}
