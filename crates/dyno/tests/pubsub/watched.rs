//! Archive to topic to table by the public commands, killed at random moments: each row is there
//! once.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dyno_readback::spots;
use serde_json::Value;

use super::served::{Log, has_server, ok};

/// Kills of the watch that must have found it alive.
const KILLS: u32 = 20;
const TOPIC: &str = "pubsub://spots";

fn ingest(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.arg("ingest").args(arguments).stdin(Stdio::null());
    command
}

fn json(command: Command) -> Value {
    serde_json::from_str(&ok(command, "")).unwrap()
}

/// An archive of plain lines.
fn archive(rows: &str, folder: &Path) -> PathBuf {
    let folder = folder.to_str().unwrap();
    let made = ["gen", "--rows", rows, "--plain", "--out", folder, "--json"];
    let made = json(ingest(&made));
    PathBuf::from(made["files"][0].as_str().unwrap())
}

fn produce(log: &Log, file: &Path) -> Child {
    let mut command = log.direct(&["produce", "spots", "--resume", "archive"]);
    let pipes = command
        .stdin(File::open(file).unwrap())
        .stdout(Stdio::null());
    pipes.stderr(Stdio::null()).spawn().unwrap()
}

/// A watch of the topic through the broker, or straight at its server.
fn watch(log: &Log, table: &Path, broker: bool, more: &[&str]) -> Command {
    let into = table.to_str().unwrap();
    let place = if broker {
        ["--broker", &log.broker]
    } else {
        ["--dsn", &log.dsn]
    };
    let mut command = ingest(&[
        "watch",
        TOPIC,
        "--into",
        into,
        "--batch-wait",
        "20ms",
        "--json",
    ]);
    command.args(place).args(more).stderr(Stdio::null());
    command
}

fn kill(mut child: Child) -> bool {
    let alive = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    alive
}

#[test]
fn an_archive_goes_through_a_topic_into_the_table_once_whatever_is_killed() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(
        log.dyno(&["topic", "create", "spots", "--partitions", "2"]),
        "",
    );
    let home = log.dir.path().to_owned();
    let file = archive("60k", &home.join("archives"));
    let (direct, table) = (home.join("direct"), home.join("spots"));
    let loaded = [
        "load",
        file.to_str().unwrap(),
        "--into",
        direct.to_str().unwrap(),
        "--json",
    ];
    assert_eq!(json(ingest(&loaded))["rows"], 60_000);
    let expected = spots(&direct).unwrap();

    let (mut kills, mut producers, mut seed) = (0, 0, 20_261_122_u64);
    let mut moment = |most_ms: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((seed >> 33) % most_ms)
    };
    for round in 0..60 {
        let producing = produce(&log, &file);
        let watching = watch(&log, &table, round % 2 == 0, &[])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(moment(300));
        producers += u32::from(kill(producing));
        thread::sleep(moment(150));
        kills += u32::from(kill(watching));
        if kills >= KILLS {
            break;
        }
    }
    let between = spots(&table).map_or(0, |sum| sum.count);
    println!("{kills} kills of the watch, {producers} of the producer, then {between} rows");
    assert!(kills >= KILLS);
    // A kill may have left a batch on its way: then the first attempt finds its place taken.
    let done = (0..5).any(|_| produce(&log, &file).wait().unwrap().success());
    assert!(done, "the producer does not get through");
    assert_eq!(log.records("spots"), 60_000);
    for broker in [true, false] {
        json(watch(&log, &table, broker, &["--once"]));
        assert_eq!(spots(&table).unwrap(), expected);
    }
    let status = json(ingest(&["status", table.to_str().unwrap(), "--json"]));
    let streams = status["streams"].as_object().unwrap();
    let next = streams
        .values()
        .map(|is| is["next_offset"].as_u64().unwrap());
    assert_eq!((streams.len(), next.sum::<u64>()), (2, 60_000));
    log.stop();
}

#[test]
fn a_watch_tells_of_its_lag_waits_for_a_log_that_is_away_and_ends_when_it_is_asked() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(log.dyno(&["topic", "create", "spots"]), "");
    let home = log.dir.path().to_owned();
    let file = archive("1000", &home.join("archives"));
    let lines = std::fs::read_to_string(&file).unwrap();
    let port = dyno_ports::free().unwrap();
    let metrics = format!("127.0.0.1:{port}");
    let table = home.join("spots");
    let mut watching = watch(&log, &table, true, &["--metrics", &metrics])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    ok(log.dyno(&["produce", "spots"]), &lines);
    until(&metrics, "dyno_watch_rows_total 1000");
    log.kill();
    until(&metrics, "dyno_watch_errors_total ");
    log.start_again();
    ok(log.dyno(&["produce", "spots"]), &lines);
    until(&metrics, "dyno_watch_rows_total 2000");
    until(
        &metrics,
        "dyno_watch_lag_records{partition=\"0\",topic=\"spots\"} 0",
    );
    let asked = Command::new("kill")
        .args(["-TERM", &watching.id().to_string()])
        .status();
    assert!(asked.unwrap().success());
    let mut text = String::new();
    watching
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(watching.wait().unwrap().success());
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&summary["records"], &summary["rows"]),
        (&2_000.into(), &2_000.into())
    );
    log.stop();
}

/// Waits until the metrics have a line that begins like this, with another number than 0 where the
/// beginning has none.
fn until(address: &str, line: &str) {
    let begun = Instant::now();
    loop {
        let text = scraped(address).unwrap_or_default();
        let wanted = |found: &&str| {
            found.starts_with(line) && !(line.ends_with(' ') && found.ends_with(" 0"))
        };
        if text.lines().any(|found| wanted(&found)) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{line}: {text}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn scraped(address: &str) -> Option<String> {
    use std::io::Write;
    let mut socket = std::net::TcpStream::connect(address).ok()?;
    let ask = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    socket.write_all(ask).ok()?;
    let mut text = String::new();
    socket.read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn the_suite_of_the_chain_runs_tiny() {
    if !has_server() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .env("HOME", home.path())
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME")
        .current_dir(home.path())
        .args(["run", "chain", "--tiny", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let figures = report["figures"].as_array().unwrap();
    for (case, metric) in [
        ("chain-flat-out", "throughput"),
        ("chain-delay", "latency-p50"),
        ("chain-delay", "latency-p99"),
        ("chain-killed", "throughput"),
    ] {
        let is = |figure: &&Value| figure["case"] == case && figure["metric"] == metric;
        let figure = figures.iter().find(is);
        let median = figure.and_then(|figure| figure["median"].as_f64());
        assert!(
            median.is_some_and(|median| median > 0.0),
            "{case} {metric}: {said}"
        );
    }
}
