//! The dashboards of the book ask for metrics that the programs serve.
//!
//! Each dashboard is held against `/metrics` of a real server that has done a little work, because
//! some metrics appear with the first topic, group or queue.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Others use the rest of it.
#[allow(dead_code, reason = "written for the tests of pubsub")]
#[path = "pubsub/served.rs"]
mod served;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, Dsn, Queue, QueueOptions};
use serde_json::Value;
use served::{Log, folder, has_server, interrupt, ok};

/// The names of metrics in the expressions of a dashboard.
fn asked_for(dashboard: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/operating/dashboards")
        .join(dashboard);
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = dashboard["templating"]["list"].as_array().unwrap().iter();
    let texts = targets
        .map(|target| target["expr"].as_str().unwrap())
        .chain(queries.map(|variable| variable["query"].as_str().unwrap()));
    texts.flat_map(names).collect()
}

fn names(expression: &str) -> Vec<String> {
    expression
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("dyno_") || word.starts_with("pages_"))
        .map(str::to_owned)
        .collect()
}

/// The names of metrics that a server shows.
fn served_at(port: u16) -> BTreeSet<String> {
    let until = Instant::now() + Duration::from_secs(60);
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < until, "nothing serves metrics: {error}"),
        }
        std::thread::yield_now();
    };
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split([' ', '{']).next())
        .map(str::to_owned)
        .collect()
}

fn assert_served(dashboard: &str, port: u16) {
    let asked = asked_for(dashboard);
    assert!(asked.len() >= 5, "{dashboard} asks for {asked:?}");
    let served = served_at(port);
    let missing: Vec<_> = asked.difference(&served).collect();
    assert!(
        missing.is_empty(),
        "{dashboard} asks for {missing:?}; served are {served:?}"
    );
}

/// A server that says that it listens, and ends with the test.
struct Server(Child);

impl Server {
    fn start(arguments: &[&str], folder: &Path) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dyno"))
            .args(arguments)
            .current_dir(folder)
            .env("DYNO_PAGES_DIR", folder.join("stores"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with("listening at "), "{arguments:?}: {line}");
        Server(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        interrupt(&self.0);
        let _ = self.0.wait();
    }
}

#[test]
fn the_dashboard_of_txn_asks_for_what_a_server_shows() {
    let home = tempfile::tempdir().unwrap();
    let port = dyno_ports::free().unwrap();
    let metrics = format!("127.0.0.1:{port}");
    let arguments = ["txn", "serve", "--data", "bank", "--listen", "127.0.0.1:0"];
    // Some panels are about clients of Redis.
    let more = ["--metrics", &metrics, "--resp", "127.0.0.1:0"];
    let _server = Server::start(&[&arguments[..], &more].concat(), home.path());
    assert_served("txn.json", port);
}

#[test]
fn the_dashboard_of_pages_asks_for_what_a_store_shows() {
    let home = tempfile::tempdir().unwrap();
    let port = dyno_ports::free().unwrap();
    let metrics = format!("127.0.0.1:{port}");
    let arguments = ["pages", "serve", "--size", "16MiB", "--nbd", "127.0.0.1:0"];
    let _server = Server::start(
        &[&arguments[..], &["--metrics", &metrics]].concat(),
        home.path(),
    );
    assert_served("pages.json", port);
}

#[test]
fn the_dashboards_of_pubsub_and_watch_ask_for_what_they_show() {
    if !has_server() {
        return;
    }
    let port = dyno_ports::free().unwrap();
    let metrics = format!("127.0.0.1:{port}");
    let dir = folder();
    let listen = format!("unix:{}", dir.path().join("broker.sock").display());
    let mut log = Log::start_in(dir, &listen, &["--metrics", &metrics]);
    ok(log.dyno(&["topic", "create", "spots"]), "");
    let consume = ["consume", "spots", "--group", "g", "--until-empty"];
    ok(log.dyno(&consume), "");
    let mut connection = Connection::open(&Dsn::parse(&log.dsn).unwrap()).unwrap();
    Queue::create(&mut connection, "mail", &QueueOptions::default()).unwrap();
    assert_served("pubsub.json", port);

    let port = dyno_ports::free().unwrap();
    let table = log.dir.path().join("table");
    let mut watch = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .args([
            "ingest",
            "watch",
            "pubsub://spots",
            "--dsn",
            &log.dsn,
            "--into",
        ])
        .arg(table)
        .args(["--metrics", &format!("127.0.0.1:{port}")])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // A partition's metrics appear when the watch has looked at it.
    let until = Instant::now() + Duration::from_secs(60);
    while !served_at(port).contains("dyno_watch_lag_records") {
        assert!(Instant::now() < until, "the watch shows no partition");
    }
    assert_served("ingest-watch.json", port);
    interrupt(&watch);
    watch.wait().unwrap();
    log.stop();
}
