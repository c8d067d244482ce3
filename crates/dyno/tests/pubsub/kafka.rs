//! kcat against a broker of the command line, which is killed with its database in the middle.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::served::{Log, has_server, ok};

/// Records that kcat sends, unless `DYNO_KAFKA_RECORDS` says how many.
const RECORDS: usize = 40_000;
const KEYS: usize = 17;
/// Far longer than all of it takes on a busy machine.
const LONG: Duration = Duration::from_secs(300);

/// What kcat sends, a line a record: each key's values count up.
fn lines(records: usize) -> String {
    let line = |n: usize| format!("key-{}:{}\n", n % KEYS, n / KEYS);
    (0..records).map(line).collect()
}

/// A kcat that waits out kills: it sends each batch again until it is acknowledged, and an
/// idempotent producer's batches are in the log once.
fn producing(address: &str, records: usize) -> (Child, std::thread::JoinHandle<()>) {
    let mut kcat = Command::new("kcat")
        // It would end as soon as no broker can be reached, which is not fatal.
        .args(["-E", "-P", "-q", "-b", address, "-t", "kept", "-K", ":"])
        .args([
            "-X",
            "enable.idempotence=true",
            "-X",
            "message.timeout.ms=300000",
        ])
        .args(["-X", "batch.num.messages=500", "-X", "retry.backoff.ms=50"])
        .args([
            "-X",
            "reconnect.backoff.max.ms=500",
            "-X",
            "socket.timeout.ms=5000",
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = kcat.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        // In steps, so that the kills fall between records that are sent and records that are not.
        for chunk in lines(records).as_bytes().chunks(16 << 10) {
            stdin.write_all(chunk).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    (kcat, writing)
}

#[test]
fn every_record_is_there_once_and_in_order_after_two_kills_of_broker_and_server() {
    if !has_server() {
        return;
    }
    if Command::new("kcat").arg("-V").output().is_err() {
        println!("skipped: kcat outlives kills: kcat is not installed");
        return;
    }
    let records = std::env::var("DYNO_KAFKA_RECORDS");
    let records = records.map_or(RECORDS, |records| records.parse().unwrap());
    let port = dyno_ports::free().unwrap();
    let address = format!("127.0.0.1:{port}");
    let more = ["--kafka", address.as_str()];
    let mut log = Log::start_with(&more);
    ok(
        log.dyno(&["topic", "create", "kept", "--partitions", "3"]),
        "",
    );
    let (mut kcat, writing) = producing(&address, records);
    let begun = Instant::now();
    for third in 1..=2 {
        let wanted = (records * third / 4) as i64;
        while log.records("kept") < wanted {
            assert!(begun.elapsed() < LONG, "no progress");
            assert!(kcat.try_wait().unwrap().is_none(), "kcat has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The kernel stops the server under a broker that is killed.
        log.kill();
        log.start_again_with(&more);
    }
    writing.join().unwrap();
    assert!(kcat.wait().unwrap().success());

    let mut consume = Command::new("kcat");
    consume.args([
        "-C", "-q", "-e", "-b", &address, "-t", "kept", "-f", "%k %s\n",
    ]);
    let read = ok(consume, "");
    let mut next = [0; KEYS];
    for line in read.lines() {
        let (key, value) = line.split_once(' ').unwrap();
        let key: usize = key.trim_start_matches("key-").parse().unwrap();
        assert_eq!(value.parse(), Ok(next[key]), "{line}");
        next[key] += 1;
    }
    assert_eq!(next.iter().sum::<usize>(), records);

    // The same records in a group of our own, whose name clients of Kafka cannot take then.
    let group = ["consume", "kept", "--group", "ours", "--until-empty"];
    assert_eq!(ok(log.dyno(&group), "").lines().count(), records);
    let mut taken = Command::new("kcat");
    taken.args(["-b", &address, "-G", "ours", "kept", "-X", "debug=cgrp"]);
    taken
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut taken = taken.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    taken.kill().unwrap();
    let said = taken.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("a group of dyno's own consumers"), "{said}");
    log.stop();
}
