//! Real servers, killed under load, read back and watched. `DYNO_KILL_ROUNDS` and `DYNO_KILL_SEED`
//! choose others.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_txn_api::{Database, Target};
use dyno_txn_check::{kill, recovery, soak, workload};
use dyno_txn_node::{OpenOptions, ServeOptions, open, serve};

const DATA: &str = "DYNO_TXN_CHECK_KILL_DATA";

fn engine() -> OpenOptions {
    OpenOptions {
        cores: vec![0, 1],
        partitions: Some(3),
        segment_bytes: 1 << 20,
        checkpoint_bytes: 400 << 10,
        spin: Duration::from_micros(20),
        ..OpenOptions::default()
    }
}

/// The server, when this program is run as one by the tests below.
#[test]
fn child() {
    let Ok(data) = std::env::var(DATA) else {
        return;
    };
    let server = serve(ServeOptions {
        engine: OpenOptions {
            procedures: workload::procedures().expect("procedures"),
            ..engine()
        },
        ..ServeOptions::new(data, "127.0.0.1:0")
    });
    let server = server.expect("it serves");
    println!("listening at {}", server.address());
    std::thread::sleep(Duration::from_secs(600));
}

fn start(data: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "child", "--nocapture"])
        .env(DATA, data);
    command
}

fn connect(address: &str, ring: bool) -> dyno_txn_api::Result<Box<dyn Database>> {
    let target = Target::Dyno(vec![address.to_owned()]);
    open(&target, OpenOptions { ring, ..engine() })
}

fn rounds_hold(rounds: u64) {
    let number = |variable: &str, usual: u64| {
        std::env::var(variable).map_or(usual, |n| n.parse().expect("a number"))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let seed = number("DYNO_KILL_SEED", 1);
    let outcome = kill::run(&kill::Options {
        start: &start,
        connect: &connect,
        folder: folder.path(),
        rounds: number("DYNO_KILL_ROUNDS", rounds),
        seed,
        clients: 4,
        history: None,
        stop: &AtomicBool::new(false),
        after_round: &|_, _| {},
    });
    let outcome = match outcome {
        Ok(outcome) => outcome,
        // The folder stays for whoever looks for the cause.
        Err(error) => panic!("seed {seed}: {error}, {:?}", folder.keep()),
    };
    let judgement = &outcome.judgement;
    println!(
        "seed {seed}: {} kills, {} of them while it recovered; {} committed, {} failed, {} unknown, \
         {} audits; longest recovery {:?}",
        outcome.kills + outcome.kills_recovering,
        outcome.kills_recovering,
        judgement.committed,
        judgement.failed,
        judgement.unknown,
        judgement.audits,
        outcome.recovery_longest
    );
    if !outcome.holds() {
        panic!("seed {seed}: {}, {:?}", judgement.verdict, folder.keep());
    }
    assert!(judgement.replayed, "timestamps were judged too");
    // Each round ends with a snapshot of everything.
    assert!(judgement.audits as u64 >= outcome.rounds, "{judgement:?}");
}

#[test]
fn a_killed_server_comes_back_with_all_that_it_answered() {
    rounds_hold(4);
}

#[test]
#[ignore = "takes a minute or two: before a release, and after a change to the log or to recovery"]
fn fifty_kills_hold() {
    rounds_hold(50);
}

#[test]
fn a_short_soak_breaks_no_rule_and_is_not_called_flat() {
    let folder = tempfile::tempdir().expect("a folder");
    let soaked = soak::run(&soak::Options {
        start: &start,
        connect: &connect,
        folder: folder.path(),
        length: Duration::from_secs(2),
        seed: 1,
        clients: 3,
        rate: 150,
        stop: &AtomicBool::new(false),
        after_minute: &|_, _, _| {},
    });
    let soaked = soaked.expect("it serves");
    assert!(soaked.holds(), "{}", soaked.judgement.verdict);
    assert!(!soaked.is_long() && soaked.p99_ms.is_empty());
    assert!(soaked.judgement.committed > 50, "{:?}", soaked.judgement);
    let seen = soaked.samples.first().expect("it was looked at");
    assert!(seen.memory_bytes > 1 << 20 && seen.disk_bytes > 1 << 20);
}

#[test]
fn a_log_of_some_megabytes_is_read_back_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let recovered = recovery::run(&recovery::Options {
        start: &start,
        connect: &connect,
        folder: folder.path(),
        log_bytes: 8 << 20,
        seed: 1,
        stop: &AtomicBool::new(false),
    });
    let recovered = recovered.expect("it serves");
    assert_eq!(recovered.wrong_rows, 0, "{:?}", recovered.wrong);
    assert!(recovered.transactions >= 1_000 && recovered.rows >= 8_000);
}
