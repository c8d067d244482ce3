//! Downloads from a server on loopback that misbehaves as told.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dyno_ingest_fetch::{Fetch, FetchError, Outcome};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

/// How the server answers the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// As it should.
    Well,
    /// Cuts the connection after so many bytes of the body.
    Cut(usize),
    /// With this status and no body.
    Status(u16),
    /// Says that ranges are not for it: always all of the file.
    NoRanges,
    /// A range that begins elsewhere.
    WrongRange,
    /// The range that was asked for, of whatever version it has now.
    IgnoresIfRange,
}

struct Server {
    address: String,
    file: Arc<Mutex<(Vec<u8>, String)>>,
    moods: Arc<Mutex<Vec<Mood>>>,
    /// The request's lines of each request.
    asked: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Server {
    fn start(bytes: Vec<u8>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            address: format!("http://{}/archive/", listener.local_addr().unwrap()),
            file: Arc::new(Mutex::new((bytes, "\"one\"".to_owned()))),
            moods: Arc::default(),
            asked: Arc::default(),
        };
        let (file, moods, asked) = (
            server.file.clone(),
            server.moods.clone(),
            server.asked.clone(),
        );
        thread::spawn(move || {
            for socket in listener.incoming() {
                let mut moods = moods.lock().unwrap();
                let mood = if moods.is_empty() {
                    Mood::Well
                } else {
                    moods.remove(0)
                };
                drop(moods);
                let (bytes, tag) = file.lock().unwrap().clone();
                let socket = socket.unwrap();
                let lines = request(&socket);
                // Known before the client can be done.
                asked.lock().unwrap().push(lines.clone());
                answer(socket, &lines, mood, &bytes, &tag);
            }
        });
        server
    }

    fn moods(&self, moods: &[Mood]) {
        *self.moods.lock().unwrap() = moods.to_vec();
    }

    /// The header of each request with this name, since the last time.
    fn asked(&self, name: &str) -> Vec<Option<String>> {
        let requests = std::mem::take(&mut *self.asked.lock().unwrap());
        let of = |lines: Vec<String>| {
            let line = lines
                .iter()
                .find(|line| line.to_lowercase().starts_with(name));
            line.map(|line| line.split_once(": ").unwrap().1.to_owned())
        };
        requests.into_iter().map(of).collect()
    }
}

fn request(socket: &TcpStream) -> Vec<String> {
    let lines = BufReader::new(socket).lines().map_while(Result::ok);
    lines.take_while(|line| !line.is_empty()).collect()
}

fn answer(mut socket: TcpStream, lines: &[String], mood: Mood, bytes: &[u8], tag: &str) {
    let header = |name: &str| {
        let found = lines
            .iter()
            .find(|line| line.to_lowercase().starts_with(name));
        found
            .and_then(|line| line.split_once(": "))
            .map(|(_, value)| value.to_owned())
    };
    let mut head = format!("ETag: {tag}\r\nConnection: close\r\n");
    let is_same = header("if-range:").as_deref() == Some(tag) || mood == Mood::IgnoresIfRange;
    let range = header("range:").filter(|_| is_same);
    let from = range.map_or(0, |range| {
        let digits: String = range.chars().filter(|c| c.is_ascii_digit()).collect();
        digits.parse().unwrap()
    });
    let (status, body) = match mood {
        Mood::Status(status) => (status, &[][..]),
        _ if header("if-none-match:").as_deref() == Some(tag) => (304, &[][..]),
        Mood::NoRanges => (200, bytes),
        _ if from > 0 => (206, &bytes[from..]),
        _ => (200, bytes),
    };
    if status == 206 {
        let shown = if mood == Mood::WrongRange {
            from - 1
        } else {
            from
        };
        head += &format!(
            "Content-Range: bytes {shown}-{}/{}\r\n",
            bytes.len() - 1,
            bytes.len()
        );
    }
    head += &format!("Content-Length: {}\r\n", body.len());
    let sent = match mood {
        Mood::Cut(at) => &body[..at.min(body.len())],
        _ => body,
    };
    // The client may have seen enough and hang up, which is not the server's business.
    let _ = socket.write_all(format!("HTTP/1.1 {status} X\r\n{head}\r\n").as_bytes());
    let _ = socket.write_all(sent);
}

/// Text that gzip makes hardly smaller, so that there is something to cut.
fn archive(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::new(6));
    for _ in 0..20_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        writeln!(gzip, "{state:x}").unwrap();
    }
    gzip.finish().unwrap()
}

fn fetch(server: &Server, folder: &Path) -> Fetch {
    Fetch {
        from: server.address.clone(),
        folder: folder.to_owned(),
        attempts: 3,
        first_wait: Duration::from_millis(1),
        attempt: Duration::from_secs(60),
    }
}

fn fetched(server: &Server, folder: &Path) -> Result<Outcome, FetchError> {
    fetch(server, folder).file(NAME, &AtomicBool::new(false), &|_| {})
}

const NAME: &str = "wsprspots-2026-01.csv.gz";

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_was_cut_off_goes_on_and_what_is_there_is_not_fetched_again() {
    let (dir, bytes) = (TempDir::new().unwrap(), archive(1));
    let server = Server::start(bytes.clone());
    server.moods(&[Mood::Cut(1000), Mood::Status(503), Mood::Cut(50_000)]);
    let outcome = fetched(&server, dir.path()).unwrap();
    assert_eq!(
        outcome,
        Outcome::Fetched {
            bytes: bytes.len() as u64,
            resumed: 0,
            warning: None
        }
    );
    assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), bytes);
    let ranges = server.asked("range:");
    assert_eq!(
        ranges[..3],
        [
            None,
            Some("bytes=1000-".to_owned()),
            Some("bytes=1000-".to_owned())
        ]
    );
    assert_eq!(ranges[3], Some("bytes=51000-".to_owned()));
    assert_eq!(fetched(&server, dir.path()).unwrap(), Outcome::Unchanged);
    assert_eq!(server.asked("if-none-match:"), [Some("\"one\"".to_owned())]);
    assert_eq!(
        names(dir.path()),
        [format!(".{NAME}.version"), NAME.to_owned()]
    );
}

#[test]
fn another_process_goes_on_where_one_was_killed() {
    let (dir, bytes) = (TempDir::new().unwrap(), archive(2));
    let server = Server::start(bytes.clone());
    server.moods(&[Mood::Cut(3000), Mood::Cut(0), Mood::Cut(0), Mood::Cut(0)]);
    let error = fetched(&server, dir.path()).unwrap_err();
    assert!(
        matches!(error, FetchError::Unreachable { attempts: 3, .. }),
        "{error}"
    );
    assert_eq!(
        fs::metadata(dir.path().join(format!("{NAME}.partial")))
            .unwrap()
            .len(),
        3000
    );
    server.moods(&[]);
    let outcome = fetched(&server, dir.path()).unwrap();
    assert_eq!(
        outcome,
        Outcome::Fetched {
            bytes: bytes.len() as u64,
            resumed: 3000,
            warning: None
        }
    );
    assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), bytes);
}

#[test]
fn a_file_that_had_come_whole_is_not_asked_for_again() {
    let (dir, bytes) = (TempDir::new().unwrap(), archive(10));
    let server = Server::start(bytes.clone());
    fetched(&server, dir.path()).unwrap();
    let aside = dir.path().join(format!("{NAME}.partial"));
    fs::rename(dir.path().join(NAME), &aside).unwrap();
    let version = dir.path().join(format!(".{NAME}.version"));
    fs::rename(version, dir.path().join(format!(".{NAME}.partial.version"))).unwrap();
    server.asked("range:");
    let length = bytes.len() as u64;
    let outcome = fetched(&server, dir.path()).unwrap();
    assert_eq!(
        outcome,
        Outcome::Fetched {
            bytes: length,
            resumed: length,
            warning: None
        }
    );
    assert!(server.asked("range:").is_empty());
}

/// The running month grows: what came of the older file is of no use for the newer one.
#[test]
fn a_file_that_changed_meanwhile_is_fetched_from_its_begin() {
    let (dir, newer) = (TempDir::new().unwrap(), archive(4));
    let server = Server::start(archive(3));
    server.moods(&[Mood::Cut(3000), Mood::Cut(0), Mood::Cut(0), Mood::Cut(0)]);
    fetched(&server, dir.path()).unwrap_err();
    *server.file.lock().unwrap() = (newer.clone(), "\"two\"".to_owned());
    server.moods(&[]);
    let outcome = fetched(&server, dir.path()).unwrap();
    assert_eq!(
        outcome,
        Outcome::Fetched {
            bytes: newer.len() as u64,
            resumed: 0,
            warning: None
        }
    );
    assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), newer);
    *server.file.lock().unwrap() = (archive(5), "\"three\"".to_owned());
    assert!(matches!(
        fetched(&server, dir.path()).unwrap(),
        Outcome::Fetched { .. }
    ));
    assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), archive(5));
}

#[test]
fn a_server_without_ranges_or_with_wrong_ones_does_no_harm() {
    for mood in [Mood::NoRanges, Mood::WrongRange] {
        let (dir, bytes) = (TempDir::new().unwrap(), archive(6));
        let server = Server::start(bytes.clone());
        server.moods(&[Mood::Cut(1000), mood]);
        fetched(&server, dir.path()).unwrap();
        assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), bytes, "{mood:?}");
    }
}

#[test]
fn a_server_that_never_sends_the_range_that_was_asked_for_sends_the_whole_file() {
    let (dir, bytes) = (TempDir::new().unwrap(), archive(11));
    let server = Server::start(bytes.clone());
    server.moods(&[Mood::Cut(1000), Mood::WrongRange, Mood::WrongRange]);
    fetched(&server, dir.path()).unwrap();
    assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), bytes);
}

#[test]
fn a_range_of_another_version_is_not_put_behind_the_first_one() {
    let (dir, newer) = (TempDir::new().unwrap(), archive(13));
    let server = Server::start(archive(12));
    server.moods(&[Mood::Cut(3000), Mood::Cut(0), Mood::Cut(0), Mood::Cut(0)]);
    fetched(&server, dir.path()).unwrap_err();
    *server.file.lock().unwrap() = (newer.clone(), "\"two\"".to_owned());
    server.moods(&[Mood::IgnoresIfRange]);
    let outcome = fetched(&server, dir.path()).unwrap();
    assert!(matches!(outcome, Outcome::Fetched { resumed: 0, .. }));
    assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), newer);
}

#[test]
fn a_file_that_was_cut_on_this_machine_is_fetched_again() {
    let (dir, bytes) = (TempDir::new().unwrap(), archive(14));
    let server = Server::start(bytes.clone());
    fetched(&server, dir.path()).unwrap();
    let path = dir.path().join(NAME);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(100).unwrap();
    fetched(&server, dir.path()).unwrap();
    assert_eq!(fs::read(path).unwrap(), bytes);
}

/// Otherwise a process that is killed between the two leaves the bytes of one version under the
/// name of another, and the next one goes on behind them. A directory cannot be cut.
#[test]
fn a_partial_file_gets_another_version_only_after_it_is_cut() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(archive(15));
    server.moods(&[Mood::Cut(3000), Mood::Cut(0), Mood::Cut(0), Mood::Cut(0)]);
    fetched(&server, dir.path()).unwrap_err();
    let aside = dir.path().join(format!("{NAME}.partial"));
    fs::remove_file(&aside).unwrap();
    fs::create_dir(&aside).unwrap();
    *server.file.lock().unwrap() = (archive(16), "\"two\"".to_owned());
    server.moods(&[]);
    let error = fetched(&server, dir.path()).unwrap_err();
    assert!(matches!(error, FetchError::Io { .. }), "{error}");
    let version = dir.path().join(format!(".{NAME}.partial.version"));
    let version = fs::read_to_string(version).unwrap();
    assert!(version.contains("one"), "{version}");
}

#[test]
fn a_file_that_somebody_else_brought_is_known_by_its_length() {
    let (dir, bytes) = (TempDir::new().unwrap(), archive(7));
    let server = Server::start(bytes.clone());
    fs::write(dir.path().join(NAME), &bytes).unwrap();
    assert_eq!(fetched(&server, dir.path()).unwrap(), Outcome::Unchanged);
    assert_eq!(fetched(&server, dir.path()).unwrap(), Outcome::Unchanged);
    assert_eq!(
        server.asked("if-none-match:"),
        [None, Some("\"one\"".to_owned())]
    );
}

#[test]
fn damaged_missing_and_forbidden_files_are_told_apart() {
    let dir = TempDir::new().unwrap();
    let mut bytes = archive(8);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let server = Server::start(bytes);
    let error = fetched(&server, dir.path()).unwrap_err();
    assert!(matches!(error, FetchError::Damaged { .. }), "{error}");
    assert_eq!(
        names(dir.path()),
        Vec::<String>::new(),
        "nothing of it is kept"
    );
    server.moods(&[Mood::Status(404)]);
    assert_eq!(fetched(&server, dir.path()).unwrap(), Outcome::Missing);
    server.moods(&[Mood::Status(403)]);
    let error = fetched(&server, dir.path()).unwrap_err();
    assert!(
        matches!(error, FetchError::Refused { status: 403, .. }),
        "{error}"
    );
    server.moods(&[Mood::Status(500); 3]);
    let error = fetched(&server, dir.path()).unwrap_err();
    assert!(
        error.to_string().contains("answers 500 (3 attempts)"),
        "{error}"
    );
}

#[test]
fn a_stop_keeps_what_has_come() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(archive(9));
    let stop = AtomicBool::new(false);
    let error = fetch(&server, dir.path())
        .file(NAME, &stop, &|_| stop.store(true, Ordering::Relaxed))
        .unwrap_err();
    assert!(matches!(error, FetchError::Stopped), "{error}");
    assert!(
        fs::metadata(dir.path().join(format!("{NAME}.partial")))
            .unwrap()
            .len()
            > 0
    );
    assert!(matches!(
        fetched(&server, dir.path()).unwrap(),
        Outcome::Fetched { .. }
    ));
}
