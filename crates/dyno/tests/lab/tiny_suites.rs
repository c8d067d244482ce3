//! Every built-in suite runs with tiny inputs, so that none of them rots; and a run can be
//! reported, checked and compared.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use assert_cmd::assert::{Assert, OutputAssertExt};
use dyno_record::{Outcome, RunDir, StoredRun};

use crate::home::{dyno, has_sql, only_run, runs, scratch_directories};

/// Lets a run end well, and returns its record and what it said.
fn record_of(home: &Path, mut run: Command) -> (StoredRun, String) {
    let ran = run.assert();
    let said = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
    assert_eq!(ran.get_output().status.code(), Some(0), "{said}");
    (RunDir::open(&only_run(home)).expect("a record"), said)
}

/// Asks a rig as the lab asks it: on its standard input.
fn ask_rig(home: &Path, request: &str) -> Assert {
    assert_cmd::Command::from_std(dyno(home))
        .arg("rig")
        .write_stdin(request)
        .assert()
}

/// Fails unless a case was measured on a system.
fn assert_measured((stored, said): &(StoredRun, String), case: &str, system: &str, metric: &str) {
    let mut samples = stored.samples.iter();
    let done = samples.any(|s| {
        (s.case == case && s.system == system)
            && (s.outcome == Outcome::Done && s.metrics[metric] > 0.0)
    });
    assert!(done, "{case}, {system}: {said}");
}

/// The suites of transactions promise to say how many checkpoints a sample held.
fn assert_counts_checkpoints(stored: &StoredRun) {
    let suite = &*stored.run.plan.suite;
    let mut samples = stored.samples.iter();
    let counted = samples.any(|sample| sample.metrics.contains_key("checkpoints"));
    assert!(counted || !matches!(suite, "k2" | "tpcc"), "{suite}");
}

/// The suites with a seed document, in two halves that take equally long, so that two run at a time.
const LOGS_AND_PAGES: [&str; 4] = ["k2", "pages", "pubsub", "sage"];
const TABLES_AND_TRANSACTIONS: [&str; 7] = [
    "llm",
    "pages-device",
    "tpcc",
    "tpch",
    "wspr",
    "wspr-clickhouse",
    "wspr-queries",
];

#[test]
fn the_seeds_are_these_suites() {
    let home = tempfile::tempdir().expect("a directory");
    let planned = dyno(home.path())
        .args(["plan", "seeds", "--tiny", "--json"])
        .assert()
        .success();
    let plans: serde_json::Value =
        serde_json::from_slice(&planned.get_output().stdout).expect("JSON");
    let plans = plans.as_array().expect("a list of plans").iter();
    let planned: Vec<_> = plans
        .map(|plan| plan["plan"]["suite"].as_str().expect("a name"))
        .collect();
    let mut expected = [&LOGS_AND_PAGES[..], &TABLES_AND_TRANSACTIONS[..]].concat();
    expected.sort_unstable();
    assert_eq!(planned, expected);
}

#[test]
fn the_seeds_of_logs_and_pages_run_tiny_and_can_be_read_again() {
    run_tiny(&LOGS_AND_PAGES);
}

#[test]
fn the_seeds_of_tables_and_transactions_run_tiny_and_can_be_read_again() {
    run_tiny(&TABLES_AND_TRANSACTIONS);
}

fn run_tiny(suites: &[&str]) {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let ran = dyno(home).arg("run").args(suites).arg("--tiny").assert();
    let output = ran.get_output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Queries and what is read back need the other program; without it the suite says so and the
    // rest runs.
    let sql = has_sql();
    let expected = if sql { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(expected), "{said}");
    assert!(
        sql || said.contains("cargo build --release -p dyno-sql"),
        "{said}"
    );

    let runs = runs(home);
    // A suite that this machine lacks something for is left out with the reason.
    let left_out = said.lines().filter(|line| line.contains(": left out: "));
    assert_eq!(
        runs.len() + left_out.count(),
        suites.len(),
        "a run for each suite: {runs:?}"
    );
    for run in runs {
        let stored = RunDir::open(&run).expect("a record");
        for case in &stored.run.plan.cases {
            for system in &case.systems {
                let mut samples = stored.samples.iter().filter(|s| s.case == case.name);
                let done = samples.any(|s| s.system == *system && s.outcome == Outcome::Done);
                assert!(
                    done || (!sql && dyno_rigs::needs_sql(&case.workload, &case.params)),
                    "{} on {system}: {said}",
                    case.name
                );
            }
        }
        assert_counts_checkpoints(&stored);
        for name in ["report.md", "report.html", "report.xlsx", "report.json"] {
            assert!(run.join(name).metadata().expect(name).len() > 500, "{name}");
        }
    }
    let left = scratch_directories(home);
    assert!(left.is_empty(), "{left:?}");

    for format in ["md", "html", "xlsx", "json"] {
        dyno(home)
            .args(["report", "--format", format])
            .assert()
            .success();
    }
    // One repeat proves nothing, and the linter must say so without failing to run.
    let lint = dyno(home).args(["lint", "--json"]).assert();
    assert!(matches!(lint.get_output().status.code(), Some(0 | 1)));
    let same = dyno(home).args(["compare", "runs", "runs"]).assert();
    assert!(matches!(same.get_output().status.code(), Some(0 | 3)));
}

/// Follows the recipe "a peer as a server" of CONTRIBUTING.md with a peer that has a server: the rig
/// starts one for each invocation, and its answer is compared with that of the engine.
#[test]
fn a_peer_that_is_a_server_is_started_and_measured() {
    if let Some(missing) = dyno_rigs::peer_missing("postgres") {
        println!("skipped: peer postgres: {missing}");
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    // PostgreSQL refuses to run as root, so another user has to get into the directory.
    fs::set_permissions(home, fs::Permissions::from_mode(0o755)).expect("ours");
    let ran = dyno(home)
        .args(["run", "tpcc", "--tiny", "--peers", "--case", "one-client"])
        .assert();
    let said = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
    assert_eq!(ran.get_output().status.code(), Some(0), "{said}");
    let stored = RunDir::open(&only_run(home)).expect("a record");
    for system in ["dyno", "postgres"] {
        let mut samples = stored.samples.iter().filter(|s| s.system == system);
        let done = samples.any(|s| s.outcome == Outcome::Done && s.metrics["throughput"] > 0.0);
        assert!(done, "{system}: {said}");
    }
}

/// Kafka's own clients write to our log and read from it, and every count is right.
#[test]
fn clients_of_kafka_are_measured_against_our_log() {
    let none = std::collections::BTreeMap::new();
    if let Some(missing) = dyno_rigs::workload_missing("kafka-produce", &none) {
        println!("skipped: the suite kafka: {missing}");
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    // PostgreSQL refuses to run as root, so another user has to get into the directory.
    fs::set_permissions(home, fs::Permissions::from_mode(0o755)).expect("ours");
    let peers = dyno_suite::peers_root().expect("the jars are below it");
    let data = peers.ancestors().nth(2).expect("dynolab/peers");
    let mut run = dyno(home);
    run.env("XDG_DATA_HOME", data)
        .args(["run", "kafka", "--tiny"]);
    let record = record_of(home, run);
    for case in ["kafka-produce", "kafka-consume"] {
        assert_measured(&record, case, "dyno", "throughput");
    }
    let left = scratch_directories(home);
    assert!(left.is_empty(), "{left:?}");
}

/// Redis' own benchmark runs against our engine and against Redis, and every increment is there.
#[test]
fn clients_of_redis_are_measured_against_transactions() {
    let none = std::collections::BTreeMap::new();
    if let Some(missing) = dyno_rigs::workload_missing("resp-run", &none) {
        println!("skipped: the suite resp: {missing}");
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let mut run = dyno(home);
    run.args(["run", "resp", "--tiny", "--peers"]);
    let record = record_of(home, run);
    for case in ["resp-incr", "resp-set-pipelined", "resp-get"] {
        for system in ["dyno", "redis-always"] {
            assert_measured(&record, case, system, "throughput");
        }
    }
}

/// YCSB's workloads run against our engine and against Redis, and both read the same at first. The
/// one that needs a sorted set is refused.
#[test]
fn workloads_of_ycsb_are_measured_over_redis_protocol() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let mut run = dyno(home);
    run.args(["run", "ycsb", "--tiny"]);
    let peers = dyno_rigs::peer_missing("redis-always").is_none();
    if peers {
        run.arg("--peers");
    } else {
        println!("skipped: the peers of the suite ycsb: Redis is not installed")
    }
    let record = record_of(home, run);
    for case in ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-f"] {
        let systems = [("dyno", true), ("redis-everysec", peers)];
        for (system, _) in systems.into_iter().filter(|(_, runs)| *runs) {
            assert_measured(&record, case, system, "throughput");
        }
    }
    let params = r#"{"mix":"e","clients":1,"records":1,"seconds":1}"#;
    let asked = format!(r#"{{"workload":"resp-ycsb","params":{params}}}"#);
    let rig = ask_rig(home, &asked).code(2);
    let said = String::from_utf8_lossy(&rig.get_output().stderr).into_owned();
    assert!(said.contains("a sorted set"), "{said}");
}

/// Memory of a snapshot comes back whole by our pager, by a plain one and from the page cache.
#[test]
fn restores_of_a_snapshot_are_measured_beside_other_ways() {
    let none = std::collections::BTreeMap::new();
    if let Some(missing) = dyno_rigs::workload_missing("pages-restore", &none) {
        println!("skipped: the suite pages-pager: {missing}");
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let mut run = dyno(home);
    run.args(["run", "pages-pager", "--tiny", "--peers"]);
    let record = record_of(home, run);
    for (case, metric) in [
        ("restore-first", "restore-time"),
        ("restore-all-4", "throughput"),
        ("clones", "bytes"),
    ] {
        for system in ["dyno", "plain-pager", "page-cache"] {
            assert_measured(&record, case, system, metric);
        }
    }
}

#[test]
fn a_missing_peer_is_named_with_how_to_install_it() {
    let home = tempfile::tempdir().expect("a directory");
    let plan = dyno(home.path())
        .args(["plan", "wspr", "--tiny", "--peers"])
        .assert()
        .success();
    let said = String::from_utf8_lossy(&plan.get_output().stdout).into_owned();
    let none = fs::read_dir(home.path().join(".cache")).is_err();
    assert!(none, "a plan makes nothing");
    for peer in ["duckdb", "chdb"] {
        assert!(
            said.contains(&format!("dyno peers install {peer}")),
            "{said}"
        );
    }
    dyno(home.path())
        .args(["peers", "verify", "chdb"])
        .assert()
        .code(1);
}

/// A peer that is a client or a server of this machine is installed where that is, and nowhere
/// else: our own program, which speaks for it, is not a sign of it.
#[test]
fn a_peer_whose_programs_are_not_here_is_missing() {
    let home = tempfile::tempdir().expect("a directory");
    let nothing = tempfile::tempdir().expect("a directory");
    let verified = dyno(home.path())
        .env("PATH", nothing.path())
        .args(["peers", "verify", "clickhouse-client"])
        .assert()
        .code(1);
    let said = String::from_utf8_lossy(&verified.get_output().stderr).into_owned();
    assert!(said.contains("not installed"), "{said}");
    let listed = dyno(home.path())
        .env("PATH", nothing.path())
        .args(["peers", "list", "--json"])
        .assert()
        .success();
    let peers: serde_json::Value =
        serde_json::from_slice(&listed.get_output().stdout).expect("JSON");
    let peers = peers.as_array().expect("a list");
    let client = peers
        .iter()
        .find(|peer| peer["name"] == "clickhouse-client");
    assert_eq!(client.expect("it is declared")["installed"], false);
}

#[test]
fn a_plan_that_does_not_fit_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    let args = ["wspr", "--full", "--max-disk", "1MB"];
    dyno(home.path()).arg("plan").args(args).assert().code(1);
    let enough_for_tiny = ["run", "wspr", "--full", "--max-disk", "1GB"];
    let ran = dyno(home.path()).args(enough_for_tiny).assert().code(2);
    let said = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
    assert!(said.contains("--tiny needs "), "{said}");
    let ran = dyno(home.path()).arg("run").args(args).assert().code(2);
    let said = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
    assert!(
        said.contains("of disk, and --max-disk allows 1.0 MB"),
        "{said}"
    );
    assert!(!home.path().join("runs").exists(), "nothing was run");
}

#[test]
fn a_rig_refuses_what_it_does_not_know() {
    let home = tempfile::tempdir().expect("a directory");
    let rig = ask_rig(home.path(), r#"{"workload":"nothing"}"#).code(2);
    let said = String::from_utf8_lossy(&rig.get_output().stderr).into_owned();
    assert!(said.contains("no workload is called `nothing`"), "{said}");
    let version = ask_rig(home.path(), r#"{"workload":"version"}"#).success();
    assert!(version.get_output().stdout.starts_with(b"{\"version\":\""));
    ask_rig(home.path(), "nonsense").code(2);
}

#[test]
fn completions_and_manual_pages_come_out_of_the_same_definitions() {
    let home = tempfile::tempdir().expect("a directory");
    for shell in ["bash", "zsh", "fish"] {
        let script = dyno(home.path())
            .args(["completions", shell])
            .assert()
            .success();
        assert!(script.get_output().stdout.len() > 1_000, "{shell}");
    }
    dyno(home.path()).args(["man", "pages"]).assert().success();
    let pages = home.path().join("pages");
    assert!(pages.join("dyno.1").is_file() && pages.join("dyno-run.1").is_file());
    assert!(
        !pages.join("dyno-rig.1").exists(),
        "hidden commands have no page"
    );
}
