//! The collector on a real broker: Debian's mosquitto, started on loopback, with mosquitto_pub as
//! the other side.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dyno_certificates::Certificates;
use dyno_ingest_collect::{CollectError, Collector, Metrics, Settings, Summary};
use dyno_ingest_feeds::psk::Capture;
use dyno_serve::{Registry, tls};
use tempfile::TempDir;

/// 2026-01-31T12:30:00Z.
const NOW_MS: i64 = 1_769_862_600_000;
const HOUR_MS: i64 = 3_600_000;
/// A test that waits so long has failed.
const LIMIT: Duration = Duration::from_secs(60);

fn is_there() -> bool {
    let found = ["/usr/sbin/mosquitto", "/usr/bin/mosquitto_pub"]
        .iter()
        .all(|path| Path::new(path).exists());
    if !found {
        println!(
            "skipped: the collector on a broker: mosquitto is not installed (scripts/setup test)"
        );
    }
    found
}

struct Mosquitto {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Mosquitto {
    /// On a port that was free a moment ago; `more` is put into its configuration.
    fn start(folder: &Path, more: &str) -> Mosquitto {
        Mosquitto::start_at(folder, dyno_ports::free().unwrap(), more)
    }

    fn start_at(folder: &Path, port: u16, more: &str) -> Mosquitto {
        let configuration = folder.join("mosquitto.conf");
        // As root it would become another user, who may not read the test's files.
        fs::write(
            &configuration,
            format!("listener {port} 127.0.0.1\nuser root\n{more}\n"),
        )
        .unwrap();
        let child = Command::new("/usr/sbin/mosquitto")
            .arg("-c")
            .arg(&configuration)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let broker = Mosquitto {
            child,
            port,
            folder: folder.to_owned(),
        };
        wait_until("mosquitto listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        broker
    }

    /// Publishes each line as a message.
    fn publish(&self, topic: &str, lines: &str) {
        let mut publisher = Command::new("mosquitto_pub")
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &self.port.to_string(),
                "-t",
                topic,
                "-l",
            ])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        publisher
            .stdin
            .take()
            .unwrap()
            .write_all(lines.as_bytes())
            .unwrap();
        assert!(publisher.wait().unwrap().success());
    }

    /// Kills it, as a power cut would, and starts another in its place.
    fn restart(mut self) -> Mosquitto {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Mosquitto::start_at(&self.folder.clone(), self.port, "allow_anonymous true")
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

struct Running {
    stop: Arc<AtomicBool>,
    clock: Arc<AtomicI64>,
    registry: Registry,
    thread: JoinHandle<Result<Summary, CollectError>>,
}

impl Running {
    fn start(address: &str, folder: &Path) -> Running {
        Running::trusting(address, folder, None)
    }

    /// Through TLS, with the roots in this file.
    fn trusting(address: &str, folder: &Path, roots: Option<&Path>) -> Running {
        let (stop, clock) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicI64::new(NOW_MS)),
        );
        let registry = Registry::new();
        let settings = Settings {
            tls: roots.map(|roots| tls::client(roots).unwrap()),
            ..settings(address, folder, &clock)
        };
        let collector = Collector::new(settings, Metrics::new(&registry).unwrap()).unwrap();
        let stopping = Arc::clone(&stop);
        let thread = thread::spawn(move || collector.run(&stopping));
        Running {
            stop,
            clock,
            registry,
            thread,
        }
    }

    fn metric(&self, name: &str) -> i64 {
        let text = self.registry.text();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as i64
    }

    fn wait_for(&self, name: &str, value: i64) {
        wait_until(&format!("{name} is {value}"), || self.metric(name) >= value);
    }

    fn stop(self) -> Result<Summary, CollectError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn settings(address: &str, folder: &Path, clock: &Arc<AtomicI64>) -> Settings {
    let clock = Arc::clone(clock);
    Settings {
        broker: address.parse().unwrap(),
        tls: None,
        folder: folder.to_owned(),
        client_id: format!("dyno-test-{}", std::process::id()),
        keep_alive: Duration::from_secs(5),
        waits: (Duration::from_millis(20), Duration::from_millis(100)),
        clock: Arc::new(move || clock.load(Ordering::Relaxed)),
    }
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("pskr-"))
        .collect();
    names.sort();
    names
}

fn captures(path: &Path) -> Vec<Capture> {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn events(captures: &[Capture]) -> Vec<&str> {
    captures
        .iter()
        .filter_map(|capture| capture.event.as_deref())
        .collect()
}

fn raws(captures: &[Capture]) -> Vec<String> {
    captures
        .iter()
        .filter_map(|capture| capture.raw.clone())
        .collect()
}

fn messages(numbers: impl IntoIterator<Item = u32>) -> String {
    numbers
        .into_iter()
        .map(|sq| format!("{{\"sq\":{sq},\"f\":14074000,\"md\":\"FT8\"}}\n"))
        .collect()
}

#[test]
fn messages_come_into_files_of_their_hours_as_they_were_sent() {
    if !is_there() {
        return;
    }
    let (dir, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let broker = Mosquitto::start(dir.path(), "allow_anonymous true");
    let running = Running::start(
        &format!("mqtt://127.0.0.1:{}/pskr/#", broker.port),
        out.path(),
    );
    running.wait_for("dyno_collect_connected", 1);
    let sent = messages((1..=200).filter(|sq| !(50..60).contains(sq)));
    broker.publish("pskr/filter/v2/20m/FT8", &sent);
    running.wait_for("dyno_collect_messages_total", 190);
    assert_eq!(running.metric("dyno_collect_sequence_missing"), 10);
    assert_eq!(running.metric("dyno_collect_sequence_gaps_total"), 1);
    // The next hour begins with its first message, or with the clock.
    running.clock.store(NOW_MS + HOUR_MS, Ordering::Relaxed);
    broker.publish("pskr/filter/v2/40m/FT8", "not even JSON\n");
    running.wait_for("dyno_collect_messages_total", 191);
    wait_until("the hour has its name", || {
        files(out.path()).contains(&"pskr-2026-01-31T12.jsonl.gz".to_owned())
    });
    let summary = running.stop().unwrap();
    assert_eq!(
        (summary.messages, summary.connections, summary.missing),
        (191, 1, 10)
    );
    assert_eq!(
        files(out.path()),
        ["pskr-2026-01-31T12.jsonl.gz", "pskr-2026-01-31T13.jsonl.gz"]
    );
    let first = captures(&out.path().join("pskr-2026-01-31T12.jsonl.gz"));
    assert_eq!(raws(&first).join("\n") + "\n", sent);
    assert_eq!(events(&first), ["started", "connected", "sequence"]);
    assert!(
        first
            .iter()
            .all(|capture| capture.rx == "2026-01-31T12:30:00.000Z" || capture.event.is_some())
    );
    assert_eq!(first[2].topic.as_deref(), Some("pskr/filter/v2/20m/FT8"));
    let account = first.last().unwrap().detail.clone().unwrap();
    assert!(
        account.contains("\"missing\":10") && account.contains("\"received\":190"),
        "{account}"
    );
    let second = captures(&out.path().join("pskr-2026-01-31T13.jsonl.gz"));
    assert_eq!(raws(&second), ["not even JSON"]);
    assert_eq!(events(&second), ["sequence", "stopped"]);
}

#[test]
fn a_broker_that_goes_away_is_come_back_to() {
    if !is_there() {
        return;
    }
    let (dir, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let broker = Mosquitto::start(dir.path(), "allow_anonymous true");
    let running = Running::start(&format!("mqtt://127.0.0.1:{}/a/+", broker.port), out.path());
    running.wait_for("dyno_collect_connections_total", 1);
    broker.publish("a/b", &messages(1..=5));
    running.wait_for("dyno_collect_messages_total", 5);
    let broker = broker.restart();
    running.wait_for("dyno_collect_connections_total", 2);
    broker.publish("a/b", &messages(9..=10));
    broker.publish("a/b/c", "below the filter\n");
    running.wait_for("dyno_collect_messages_total", 7);
    let summary = running.stop().unwrap();
    assert_eq!(
        (summary.messages, summary.connections, summary.missing),
        (7, 2, 3)
    );
    let found = captures(&out.path().join("pskr-2026-01-31T12.jsonl.gz"));
    let mut events = events(&found);
    // A machine under load may need more than one attempt, the first time as well.
    events.dedup();
    let first = events
        .iter()
        .position(|event| *event == "connected")
        .unwrap();
    assert_eq!(events[0], "started");
    assert!(
        events[1..first]
            .iter()
            .all(|event| *event == "disconnected")
    );
    assert_eq!(
        events[first..],
        [
            "connected",
            "sequence",
            "disconnected",
            "connected",
            "sequence",
            "stopped"
        ]
    );
    assert_eq!(raws(&found).len(), 7);
}

#[test]
fn a_broker_that_refuses_ends_it_in_words() {
    if !is_there() {
        return;
    }
    let (dir, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let broker = Mosquitto::start(dir.path(), "allow_anonymous false");
    let running = Running::start(
        &format!("mqtt://me@127.0.0.1:{}/a", broker.port),
        out.path(),
    );
    wait_until("it has ended", || running.thread.is_finished());
    let error = running.stop().unwrap_err();
    assert!(
        matches!(&error, CollectError::Refused { reason } if reason.contains("let us in")),
        "{error}"
    );
    let found = captures(&out.path().join("pskr-2026-01-31T12.jsonl.gz"));
    assert_eq!(events(&found), ["started", "stopped"]);
}

/// mosquitto's own TLS, with certificates that it did not make either.
#[test]
fn a_broker_behind_tls_is_heard_and_one_that_nobody_vouches_for_is_not() {
    if !is_there() {
        return;
    }
    let (dir, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let Some(made) = Certificates::make(dir.path(), "mqtts:// to mosquitto") else {
        return;
    };
    let port = dyno_ports::free().unwrap();
    let more = format!(
        "allow_anonymous true\nlistener {port} 127.0.0.1\ncertfile {}\nkeyfile {}",
        made.server().display(),
        made.server_key().display()
    );
    // mosquitto_pub goes by the other, plain listener.
    let broker = Mosquitto::start(dir.path(), &more);
    let address = format!("mqtts://localhost:{port}/pskr/#");
    let running = Running::trusting(&address, out.path(), Some(&made.root()));
    running.wait_for("dyno_collect_connected", 1);
    let sent = messages(1..=20_000);
    broker.publish("pskr/filter/v2/20m/FT8", &sent);
    running.wait_for("dyno_collect_messages_total", 20_000);
    let summary = running.stop().unwrap();
    assert_eq!((summary.messages, summary.connections), (20_000, 1));
    let found = captures(&out.path().join("pskr-2026-01-31T12.jsonl.gz"));
    assert_eq!(raws(&found).join("\n") + "\n", sent);

    let refusals = [
        (address.clone(), made.other_root(), "UnknownIssuer"),
        (
            address.replace("localhost", "127.0.0.1"),
            made.root(),
            "not valid for name",
        ),
    ];
    for (address, roots, part) in refusals {
        let out = TempDir::new().unwrap();
        let running = Running::trusting(&address, out.path(), Some(&roots));
        wait_until("it has ended", || running.thread.is_finished());
        let error = running.stop().unwrap_err().to_string();
        assert!(error.contains("TLS: ") && error.contains(part), "{error}");
    }
}

#[test]
fn whom_to_trust_is_said_for_tls_and_for_nothing_else() {
    let out = TempDir::new().unwrap();
    let clock = Arc::new(AtomicI64::new(NOW_MS));
    let settings = settings("mqtts://localhost/a", out.path(), &clock);
    let error = Collector::new(settings, Metrics::new(&Registry::new()).unwrap());
    let error = error.err().unwrap().to_string();
    assert!(error.contains("needs --tls-ca PEM"), "{error}");
}
