//! `bench`: its report can be made again, and the command line of the original runs as it stands.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::served::{Log, has_server};

/// The report of a bench, as JSON, and what it says beside; it must succeed.
fn report_and_said(dir: &Path, command: &str) -> (Value, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_dyno")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", command])
        .env("PATH", path)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env_remove("PGPASSWORD")
        .current_dir(dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
    (
        serde_json::from_slice(&output.stdout).unwrap(),
        said.into_owned(),
    )
}

fn report(dir: &Path, command: &str) -> Value {
    report_and_said(dir, command).0
}

#[test]
fn a_report_names_the_command_that_makes_it_again() {
    if !has_server() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let command = "dyno pubsub bench --partitions 2 --writers 2 --consumer-groups 1 --messages 250 \
                   --write-batch 100 --repeats 1 --json";
    let (first, said) = report_and_said(dir.path(), command);
    assert_eq!(first["commands"][0], command);
    assert!(
        said.contains("300 messages are measured, not 250"),
        "{said}"
    );
    let again = report(dir.path(), first["commands"][0].as_str().unwrap());
    let cases = |report: &Value| report["figures"][0]["case"].clone();
    assert_eq!(cases(&first), "throughput-of-direct");
    assert_eq!(cases(&again), cases(&first));
}

#[test]
fn the_command_line_of_the_original_runs_as_it_stands() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    let dir = tempfile::tempdir().unwrap();
    // That of the seed document, smaller, and on the socket of this server.
    let server = log.dir.path().join("data");
    let host = log
        .dsn
        .split_whitespace()
        .find_map(|word| word.strip_prefix("host="));
    let port = log
        .dsn
        .split_whitespace()
        .find_map(|word| word.strip_prefix("port="));
    let user = log
        .dsn
        .split_whitespace()
        .find_map(|word| word.strip_prefix("user="));
    let Some(host) = host else {
        panic!("{} has no host below {}", log.dsn, server.display());
    };
    let command = format!(
        "dyno pubsub bench --host={host} --port={} --db=postgres --user={} --password=postgres \
         --report=5s --write-batch=20 --read-batch=20 --writers=4 --readers=3 --consumer-groups=2 \
         --mode=pubsub --partitions=3 --duration=2s --throttle_writes=500 --repeats 1 --json",
        port.unwrap_or("5432"),
        user.unwrap_or("postgres"),
    );
    let rated = report(dir.path(), &command);
    let repeated = rated["commands"][0].as_str().unwrap();
    assert!(
        !repeated.contains("password") && repeated.contains("--throttle_writes=500"),
        "{repeated}"
    );
    // And as fast as it goes, for a time.
    let free = command.replace("--throttle_writes=500", "--tune-table-vacuum");
    let free = report(dir.path(), &free);
    assert_eq!(free["figures"][0]["case"], "throughput-of-direct");
    log.stop();
}
