//! Real servers, killed under load, read back and watched. `DYNO_KILL_ROUNDS` and `DYNO_KILL_SEED`
//! choose others.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_txn_api::{Database, Target};
use dyno_txn_check::redis::RedisDatabase;
use dyno_txn_check::{kill, recovery, soak, workload};
use dyno_txn_node::{OpenOptions, ServeOptions, open, serve};

const DATA: &str = "DYNO_TXN_CHECK_KILL_DATA";
/// Where the server listens for clients of Redis, if it does.
const RESP: &str = "DYNO_TXN_CHECK_KILL_RESP";

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
    let mut procedures = workload::procedures().expect("procedures");
    dyno_txn_resp::register_procedures(&mut procedures).expect("another name");
    let server = serve(ServeOptions {
        engine: OpenOptions {
            procedures,
            ..engine()
        },
        ..ServeOptions::new(data, "127.0.0.1:0")
    });
    let server = server.expect("it serves");
    let front = std::env::var(RESP).map(|address| {
        let options = dyno_txn_resp::Options::new(address.parse().expect("an address"));
        dyno_txn_resp::RespServer::start(server.database().expect("all rows"), options)
    });
    let _front = front.map(|front| front.expect("it listens"));
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

/// Kills servers and judges; with `redis` over connections of Redis' protocol.
fn rounds_hold(rounds: u64, redis: bool) {
    let number = |variable: &str, usual: u64| {
        std::env::var(variable).map_or(usual, |n| n.parse().expect("a number"))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let seed = number("DYNO_KILL_SEED", 1);
    let front = format!("127.0.0.1:{}", dyno_ports::free().expect("a port"));
    let start_both = |data: &Path| {
        let mut command = start(data);
        command.env(RESP, &front);
        command
    };
    let connect_to_front = |_: &str, _: bool| -> dyno_txn_api::Result<Box<dyn Database>> {
        Ok(Box::new(RedisDatabase::connect(&front)?))
    };
    let outcome = kill::run(&kill::Options {
        start: if redis { &start_both } else { &start },
        connect: if redis { &connect_to_front } else { &connect },
        folder: folder.path(),
        rounds: number("DYNO_KILL_ROUNDS", rounds),
        seed,
        clients: 4,
        keys_only: redis,
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
    // Redis' protocol tells no timestamps.
    assert_eq!(judgement.replayed, !redis, "timestamps were judged too");
    assert!(
        judgement.committed > 20 * outcome.rounds as usize,
        "{judgement:?}"
    );
    // Each round ends with a snapshot of everything.
    assert!(judgement.audits as u64 >= outcome.rounds, "{judgement:?}");
}

#[test]
fn a_killed_server_comes_back_with_all_that_it_answered() {
    rounds_hold(4, false);
}

#[test]
fn a_killed_server_comes_back_with_all_that_it_answered_to_clients_of_redis() {
    rounds_hold(4, true);
}

#[test]
#[ignore = "takes a minute or two: before a release, and after a change to the log or to recovery"]
fn fifty_kills_hold() {
    rounds_hold(50, false);
    rounds_hold(50, true);
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
