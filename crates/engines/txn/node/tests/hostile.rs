//! Clients that never say who they are, or never read, against a real server over TCP: others are
//! served all the same.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use dyno_net::{Head, encode};
use dyno_txn_api::{Database, Key, Operation, Request, Scan, TableDef, Target, Transact};
use dyno_txn_core::message::Message;
use dyno_txn_node::{OpenOptions, Role, ServeOptions, Server, open, serve};

fn start(role: Role) -> (Server, tempfile::TempDir) {
    let at = tempfile::tempdir().expect("a directory");
    let options = ServeOptions {
        role,
        token: Some("a-secret-of-this-test".to_owned()),
        engine: OpenOptions {
            segment_bytes: 4 << 20,
            ..OpenOptions::default()
        },
        ..ServeOptions::new(at.path().join("db"), "127.0.0.1:0")
    };
    (serve(options).expect("it serves"), at)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("it listens");
    let wait = Some(Duration::from_secs(30));
    stream.set_read_timeout(wait).expect("a time limit");
    stream
}

fn client(server: &Server) -> Box<dyn Database> {
    let options = OpenOptions {
        token: Some("a-secret-of-this-test".to_owned()),
        ring: false,
        ..OpenOptions::default()
    };
    let target = Target::Dyno(vec![server.address().to_owned()]);
    open(&target, options).expect("it connects")
}

fn write_and_read(db: &dyn Database) {
    let table = db.create_table(&TableDef::hash("t", 0)).expect("a table");
    let put = Operation::put(Key::new(table, "a"), "1");
    db.one_shot(vec![put]).expect("it commits");
    let read = db.transact(|t| t.get(table, b"a")).expect("it reads");
    assert_eq!(read.as_deref(), Some(&b"1"[..]));
}

/// A message that announces so many bytes, and its first few.
fn begun(verb: u8, bytes: usize) -> Vec<u8> {
    let head = Head {
        verb,
        flags: 0,
        request: 0,
    };
    let mut frame = Vec::new();
    encode(head, &vec![0; bytes], &mut frame).expect("short enough");
    frame.truncate(frame.len() / 2);
    frame
}

fn is_closed(stream: &mut TcpStream) -> bool {
    // A close with bytes unread is a reset.
    !matches!(stream.read(&mut [0]), Ok(1..))
}

#[test]
fn idle_connections_keep_nobody_out() {
    let (server, _at) = start(Role::All);
    let before = client(&server);
    // As many as this process may have; some of them get no further than the system's queue.
    let idle: Vec<_> = (0..700).map(|_| connect(&server)).collect();
    write_and_read(&*client(&server));
    write_and_read(&*before);
    drop(idle);
    server.stop().expect("it stops");
}

#[test]
fn long_frames_before_a_hello_end_their_connections_at_once() {
    for role in [Role::All, Role::Persist, Role::Oracle] {
        let (server, _at) = start(role);
        // 1 is a hello, 4 a message, 18 what a log's writer asks.
        for verb in [1, 4, 18] {
            let mut stream = connect(&server);
            // The other end may have hung up before all of it is written.
            let _ = stream.write_all(&begun(verb, 11 << 20));
            assert!(is_closed(&mut stream), "role {role}, verb {verb}");
        }
        if role == Role::All {
            write_and_read(&*client(&server));
        }
        server.stop().expect("it stops");
    }
}

/// A frame of the protocol, whole.
fn frame(verb: u8, body: &[u8]) -> Vec<u8> {
    let head = Head {
        verb,
        flags: 0,
        request: 0,
    };
    let mut frame = Vec::new();
    encode(head, body, &mut frame).expect("short enough");
    frame
}

/// A connection whose client has said its token.
fn admitted(server: &Server) -> TcpStream {
    let mut stream = connect(server);
    let token = b"a-secret-of-this-test";
    let hello = [&[1, 0, 0, 0, 0, token.len() as u8, 0][..], token].concat();
    stream.write_all(&frame(1, &hello)).expect("it listens");
    stream
}

#[test]
fn unfinished_frames_of_all_clients_together_have_a_bound() {
    const CLIENTS: usize = 14;
    let (server, _at) = start(Role::All);
    let db = client(&server);
    // Half of a frame of 56 MiB from each: 392 MiB, where 256 MiB may be held.
    let half = begun(4, 56 << 20);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut stream = admitted(&server);
            // The server may hang up before all of it is written.
            let _ = stream.write_all(&half);
            stream
        })
        .collect();
    let soon = Some(Duration::from_millis(200));
    let closed = clients.into_iter().filter(|mut stream| {
        stream.set_read_timeout(soon).expect("a time limit");
        let mut answer = Vec::new();
        // The answer to the hello lies before the end, which is a reset because bytes are unread.
        !matches!(
            stream.read_to_end(&mut answer),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock
        )
    });
    assert!(closed.count() >= CLIENTS - 256 / 28, "too much is held");
    write_and_read(&*db);
    server.stop().expect("it stops");
}

#[test]
fn a_client_that_asks_and_does_not_read_is_hung_up_on_and_others_go_on() {
    const ASKED: u64 = 1_000;
    const PATIENCE: Duration = Duration::from_secs(60);
    let (server, _at) = start(Role::All);
    let db = client(&server);
    let table = db
        .create_table(&TableDef::hash("large", 0))
        .expect("a table");
    for number in 0..20u8 {
        let put = Operation::put(Key::new(table, [number]), vec![number; 100_000]);
        db.one_shot(vec![put]).expect("it commits");
    }
    let mut greedy = admitted(&server);
    // Each request asks for two megabytes. Nothing is read before the server has hung up, however
    // slow it is: a client that begins to read in time may go on.
    let begun = Instant::now();
    for ticket in 0.. {
        let request = Request::Operations(vec![Operation::Scan(Scan::all(table))]);
        let message = Message::OneShot {
            ticket,
            timestamp: None,
            priority: 128,
            deadline_ns: u64::MAX,
            request,
        };
        let mut body = Vec::new();
        message.encode(&mut body);
        if greedy.write_all(&frame(4, &body)).is_err() {
            break;
        }
        if ticket >= ASKED {
            assert!(begun.elapsed() < PATIENCE, "the server did not hang up");
            thread::sleep(Duration::from_millis(1));
        }
    }
    write_and_read(&*db);
    let (mut got, mut buffer) = (0u64, vec![0; 1 << 20]);
    while let Ok(count @ 1..) = greedy.read(&mut buffer) {
        got += count as u64;
    }
    assert!(got < ASKED << 19, "{got} bytes were kept for it");
    write_and_read(&*client(&server));
    server.stop().expect("it stops");
}
