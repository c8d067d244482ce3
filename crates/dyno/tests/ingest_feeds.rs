//! Feeds other than WSPR as their users meet them: made, loaded, asked, collected and fetched.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A test that waits so long has failed.
const LIMIT: Duration = Duration::from_secs(60);

fn dyno(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command.current_dir(dir).args(arguments);
    command
}

fn ran(dir: &Path, arguments: &[&str]) -> Output {
    dyno(dir, arguments).output().unwrap()
}

fn json(dir: &Path, arguments: &[&str]) -> Value {
    let output = ran(dir, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn paths(list: &Value) -> Vec<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn feeds_lie_beside_each_other_and_a_file_of_another_is_refused() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    let mut rows = 0;
    let mut days = String::new();
    for feed in ["rbn", "cabrillo", "psk", "solar"] {
        let made = json(
            dir,
            &[
                "ingest",
                "gen",
                "--feed",
                feed,
                "--rows",
                "2000",
                "--months",
                "2",
                "--start",
                "2024-11-23",
                "--quirks",
                "0.01",
                "--out",
                feed,
                "--json",
            ],
        );
        let files = paths(&made["files"]);
        days = files[0].clone();
        let mut load = vec![
            "ingest",
            "load",
            "--into",
            "spots",
            "--feed",
            feed,
            "--max-bad",
            "10%",
            "--json",
        ];
        load.extend(files.iter().map(String::as_str));
        let loaded = json(dir, &load);
        assert_eq!(loaded["rows"], made["rows"], "{feed}");
        rows += loaded["rows"].as_u64().unwrap();
        assert_eq!(json(dir, &load)["rows"], 0, "{feed} is there already");
    }
    let status = json(dir, &["ingest", "status", "spots", "--json"]);
    assert_eq!(status["rows"], rows);
    assert_eq!(status["archives"]["rbn/2024-11-23"]["feed"], "rbn");
    let refused = ran(dir, &["ingest", "load", &days, "--into", "spots"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("looks like feed solar, not wspr; load it with --feed solar"),
        "{said}"
    );
}

/// Ended when dropped, however the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn metric(port: u16, name: &str) -> Option<f64> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
    socket
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .ok()?;
    let mut text = String::new();
    socket.read_to_string(&mut text).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// A broker, and collectors of it that work in one folder.
struct Bench {
    dir: TempDir,
    broker_port: u16,
    metrics_port: u16,
    _broker: Running,
}

impl Bench {
    fn start() -> Bench {
        let dir = TempDir::new().unwrap();
        let (broker_port, metrics_port) =
            (dyno_ports::free().unwrap(), dyno_ports::free().unwrap());
        let configuration = dir.path().join("mosquitto.conf");
        let text = format!("listener {broker_port} 127.0.0.1\nallow_anonymous true\nuser root\n");
        fs::write(&configuration, text).unwrap();
        let mut mosquitto = Command::new("/usr/sbin/mosquitto");
        mosquitto
            .arg("-c")
            .arg(&configuration)
            .stderr(Stdio::null());
        let broker = Running(mosquitto.spawn().unwrap());
        wait_until("mosquitto listens", || {
            TcpStream::connect(("127.0.0.1", broker_port)).is_ok()
        });
        Bench {
            dir,
            broker_port,
            metrics_port,
            _broker: broker,
        }
    }

    fn collect(&self) -> Running {
        let address = format!("mqtt://127.0.0.1:{}/pskr/#", self.broker_port);
        let metrics = format!("127.0.0.1:{}", self.metrics_port);
        let arguments = [
            "ingest",
            "collect",
            &address,
            "--out",
            "psk",
            "--metrics",
            &metrics,
            "--json",
        ];
        let mut collector = dyno(self.dir.path(), &arguments);
        let running = Running(
            collector
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        self.wait_for("dyno_collect_connected", 1.0);
        running
    }

    fn watch(&self) -> Running {
        let address = format!("mqtt://127.0.0.1:{}/pskr/#", self.broker_port);
        let metrics = format!("127.0.0.1:{}", self.metrics_port);
        let arguments = [
            "ingest",
            "watch",
            &address,
            "--into",
            "table",
            "--spool",
            "psk",
            "--metrics",
            &metrics,
            "--json",
        ];
        let mut watch = dyno(self.dir.path(), &arguments);
        let pipes = watch.stdout(Stdio::piped()).stderr(Stdio::null());
        let running = Running(pipes.spawn().unwrap());
        self.wait_for("dyno_collect_connected", 1.0);
        running
    }

    fn wait_for(&self, name: &str, value: f64) {
        wait_until(name, || metric(self.metrics_port, name) == Some(value));
    }

    fn publish(&self, numbers: std::ops::Range<u32>) {
        let mut child = Command::new("mosquitto_pub")
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &self.broker_port.to_string(),
                "-t",
                "pskr/filter/v2/20m",
                "-l",
            ])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        for sq in numbers {
            let time = 1_786_544_894 + sq;
            writeln!(
                input,
                "{{\"sq\":{sq},\"f\":14074000,\"md\":\"FT8\",\"t\":{time},\"sc\":\"K1ABC\"}}"
            )
            .unwrap();
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path().join("psk")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .collect()
    }

    /// Messages that the system has of the files that are open.
    fn written(&self) -> usize {
        let texts = self
            .files("open")
            .into_iter()
            .map(|path| fs::read_to_string(path).unwrap());
        texts.map(|text| text.matches("\\\"sq\\\"").count()).sum()
    }
}

/// A collector that is killed with SIGKILL and started again: what it had written is there, once.
#[test]
fn what_a_killed_collector_wrote_is_loaded_once() {
    if !Path::new("/usr/sbin/mosquitto").exists() {
        println!("skipped: dyno ingest collect: mosquitto is not installed (scripts/setup test)");
        return;
    }
    let bench = Bench::start();
    let mut first = bench.collect();
    bench.publish(1..101);
    wait_until("100 messages are written", || bench.written() == 100);
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let mut second = bench.collect();
    bench.publish(201..211);
    bench.wait_for("dyno_collect_messages_total", 10.0);
    let asked = Command::new("kill")
        .args(["-TERM", &second.0.id().to_string()])
        .status();
    assert!(asked.unwrap().success());
    let mut text = String::new();
    second
        .0
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(second.0.wait().unwrap().success());
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap()["messages"],
        10
    );
    let files: Vec<String> = bench
        .files("gz")
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let mut load = vec![
        "ingest", "load", "--feed", "psk", "--into", "table", "--json",
    ];
    load.extend(files.iter().map(String::as_str));
    let loaded = json(bench.dir.path(), &load);
    // 110 messages; of two processes: started, connected, and of the second: sequence, stopped.
    assert_eq!(loaded["rows"], 110 + 2 + 2 + 2, "{loaded}");
    let archives = loaded["archives"].as_array().unwrap();
    assert!(
        archives.iter().all(|archive| archive["bad_rows"] == 0),
        "{loaded}"
    );
}

/// A watch of a live feed that is killed with SIGKILL again and again: what was written is in the
/// table, once, and what is asked to stop loads its last hour, too.
#[test]
fn a_live_feed_is_in_the_table_once_whatever_is_killed() {
    if !Path::new("/usr/sbin/mosquitto").exists() {
        println!(
            "skipped: dyno ingest watch mqtt: mosquitto is not installed (scripts/setup test)"
        );
        return;
    }
    let bench = Bench::start();
    const KILLS: u32 = 5;
    for round in 0..KILLS {
        let mut watch = bench.watch();
        let before = bench.written();
        bench.publish(100 * round + 1..100 * round + 51);
        wait_until("50 messages are written", || bench.written() == before + 50);
        watch.0.kill().unwrap();
        watch.0.wait().unwrap();
    }
    let mut last = bench.watch();
    bench.publish(901..911);
    bench.wait_for("dyno_collect_messages_total", 10.0);
    let asked = Command::new("kill")
        .args(["-TERM", &last.0.id().to_string()])
        .status();
    assert!(asked.unwrap().success());
    let mut text = String::new();
    let mut stdout = last.0.stdout.take().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    assert!(last.0.wait().unwrap().success());
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&summary["messages"], &summary["files_bad"]),
        (&10.into(), &0.into())
    );
    let status = json(bench.dir.path(), &["ingest", "status", "table", "--json"]);
    // Messages; started and connected of each process, and of the last one: sequence, stopped.
    let messages = u64::from(50 * KILLS + 10);
    assert_eq!(
        status["rows"],
        messages + u64::from(2 * (KILLS + 1)) + 2,
        "{status}"
    );
    assert_eq!(status["bad_rows"], 0);
    let again = [
        "ingest", "watch", "psk", "--into", "table", "--once", "--json",
    ];
    let again = json(bench.dir.path(), &again);
    assert_eq!(
        (&again["files_loaded"], &again["rows"]),
        (&0.into(), &0.into()),
        "{again}"
    );
}

/// A server that has one file.
fn serve(name: &'static str, bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let lines: Vec<String> = BufReader::new(socket.try_clone().unwrap())
                .lines()
                .map(|line| line.unwrap())
                .take_while(|line| !line.is_empty())
                .collect();
            let body = if lines[0].contains(name) {
                &bytes[..]
            } else {
                &[]
            };
            let status = if body.is_empty() {
                "404 Not Found"
            } else {
                "200 OK"
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            socket.write_all(&[head.as_bytes(), body].concat()).unwrap();
        }
    });
    address
}

#[test]
fn what_is_fetched_is_loaded_and_what_is_not_there_is_said() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    let made = json(
        dir,
        &[
            "ingest",
            "gen",
            "--feed",
            "rbn",
            "--rows",
            "500",
            "--start",
            "2024-11-23",
            "--out",
            "made",
            "--json",
        ],
    );
    let address = serve(
        "20241123.zip",
        fs::read(dir.join(&paths(&made["files"])[0])).unwrap(),
    );
    let fetch = [
        "ingest",
        "fetch",
        "rbn",
        "2024-11-22..2024-11-23",
        "--into",
        "days",
        "--mirror",
        &address,
        "--json",
    ];
    let outcomes = |report: &Value| -> Vec<String> {
        let files = report["files"].as_array().unwrap();
        files
            .iter()
            .map(|file| file["outcome"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(outcomes(&json(dir, &fetch)), ["missing", "fetched"]);
    assert_eq!(outcomes(&json(dir, &fetch)), ["missing", "unchanged"]);
    let loaded = json(
        dir,
        &[
            "ingest",
            "load",
            "days/20241123.zip",
            "--feed",
            "rbn",
            "--into",
            "spots",
            "--json",
        ],
    );
    assert_eq!(loaded["rows"], 500);
    let none = ran(
        dir,
        &[
            "ingest", "fetch", "rbn", "2024-12", "--into", "days", "--mirror", &address,
        ],
    );
    assert_eq!(none.status.code(), Some(1), "none of them is the answer no");
}
