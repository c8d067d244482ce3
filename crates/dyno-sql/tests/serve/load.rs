//! `dyno-sql serve` beside a load that commits, slow readers, and a death in the middle.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::serving::{Server, ask, has_psql};
use crate::tables::{self, Form, Spot, spot};
use dyno_ingest::table::Snapshot;

const ROWS: u64 = 500;

fn archive(number: u64) -> Vec<Vec<Spot>> {
    let ids = number * ROWS..(number + 1) * ROWS;
    vec![ids.map(|id| spot(id, "K1ABC", -3)).collect()]
}

/// Commits archives one after the other until it is told to stop; returns how many.
fn load(folder: &Path, stop: &AtomicBool) -> u64 {
    let mut archives = vec![archive(0)];
    while !stop.load(Ordering::Acquire) && archives.len() < 60 {
        archives.push(archive(archives.len() as u64));
        // Each call commits one archive more and replaces those before it, file by file.
        tables::write(folder, &archives, Form::default());
    }
    archives.len() as u64
}

#[test]
fn a_statement_beside_a_load_sees_whole_archives() {
    if !has_psql() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    tables::write(folder.path(), &[archive(0)], Form::default());
    let server = Server::start(folder.path(), &[]);
    let stop = Arc::new(AtomicBool::new(false));
    let (path, stopped) = (folder.path().to_owned(), Arc::clone(&stop));
    let loader = thread::spawn(move || load(&path, &stopped));
    let (mut seen, mut different) = (0, 0);
    // A load that has committed all of its archives brings nothing new, so it ends this as well.
    while different < 15 && !loader.is_finished() {
        let row = ask(&server, "SELECT count(*), max(id) FROM spots").unwrap();
        let (count, newest) = row.split_once('|').unwrap();
        let (count, newest): (u64, u64) = (count.parse().unwrap(), newest.parse().unwrap());
        assert!(
            count.is_multiple_of(ROWS),
            "{count} rows are half an archive"
        );
        assert_eq!(newest + 1, count, "the columns are of one snapshot");
        assert!(count >= seen, "{count} rows after {seen}");
        different += u64::from(count > seen);
        seen = count;
    }
    assert!(different > 1, "no statement ran beside a commit");
    stop.store(true, Ordering::Release);
    let archives = loader.join().unwrap();
    let all = ask(&server, "SELECT count(*) FROM spots").unwrap();
    assert_eq!(all, (archives * ROWS).to_string());
}

#[test]
fn a_server_that_is_killed_beside_a_load_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    tables::write(folder.path(), &[archive(0)], Form::default());
    let mut server = Server::start(folder.path(), &[]);
    let stop = Arc::new(AtomicBool::new(false));
    let (path, stopped) = (folder.path().to_owned(), Arc::clone(&stop));
    let loader = thread::spawn(move || load(&path, &stopped));
    if has_psql() {
        for _ in 0..20 {
            ask(&server, "SELECT count(*) FROM spots").unwrap();
        }
    }
    server.kill();
    stop.store(true, Ordering::Release);
    let archives = loader.join().unwrap();
    // The load went on, the table is whole, and no lock stays behind.
    let snapshot = Snapshot::open(folder.path()).unwrap();
    assert!(snapshot.damage().is_empty());
    assert_eq!(snapshot.manifest().rows(), archives * ROWS);
    let output = Command::new(env!("CARGO_BIN_EXE_dyno-sql"))
        .arg("query")
        .arg(folder.path())
        .args(["SELECT count(*) AS n FROM spots", "--format", "csv"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("n\n{}\n", archives * ROWS));
}

/// Asks by the simple protocol, and reads nothing of the answer.
fn ask_and_wait(server: &Server, sql: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.pg).unwrap();
    let mut startup = vec![0, 3, 0, 0];
    startup.extend(b"user\0me\0database\0dyno\0\0");
    let length = (startup.len() as u32 + 4).to_be_bytes();
    stream.write_all(&[&length[..], &startup].concat()).unwrap();
    // The greeting ends with ReadyForQuery, whose type is Z and whose length is 5.
    let mut greeting = Vec::new();
    while !greeting.ends_with(b"Z\0\0\0\x05I") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        greeting.extend(byte);
    }
    let length = (sql.len() as u32 + 5).to_be_bytes();
    let query = [b"Q", &length[..], sql.as_bytes(), b"\0"].concat();
    stream.write_all(&query).unwrap();
    stream
}

#[test]
fn slow_readers_make_statements_wait_and_not_memory_grow() {
    let folder = tempfile::tempdir().unwrap();
    tables::write(folder.path(), &[archive(0)], Form::default());
    let server = Server::start(folder.path(), &["--max-rows", "30000000"]);
    if !has_psql() {
        return;
    }
    ask(&server, "SELECT count(*) FROM spots").unwrap();
    let before = server.resident_bytes();
    // Each answer has some 400 MB, of which a few batches are made.
    let sql = "SELECT v, 'a text of twenty bytes' FROM generate_series(1, 10000000) a(v)";
    let slow: Vec<_> = (0..4).map(|_| ask_and_wait(&server, sql)).collect();
    for _ in 0..50 {
        ask(&server, "SELECT count(*) FROM spots").unwrap();
    }
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(
        grown < 150 << 20,
        "{grown} bytes for four readers that do not read"
    );
    // One of them begins to read, and gets rows to the last.
    let mut reader = slow.into_iter().next().unwrap();
    let mut bytes = vec![0; 1 << 20];
    let (mut total, mut tail) = (0, Vec::new());
    loop {
        let read = reader.read(&mut bytes).unwrap();
        assert!(read > 0, "closed after {total} bytes");
        total += read;
        tail.extend_from_slice(&bytes[..read]);
        tail.drain(..tail.len().saturating_sub(64));
        if tail.ends_with(b"Z\0\0\0\x05I") {
            break;
        }
    }
    let end = String::from_utf8_lossy(&tail).into_owned();
    assert!(end.contains("SELECT 10000000"), "{end:?}");
}
