//! What a client may cost before it has shown that it may be here, and a slow one afterwards.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dyno_certificates::Certificates;
use dyno_net::{
    Address, CallOptions, Caller, Charge, Closed, Connection, Frame, Head, Listener, Outbox,
    ServeOptions, Server, Service, Share, Stream, encode,
};

/// The first request, which admits.
const HELLO: u8 = 1;
/// Answered with a megabyte.
const LARGE: u8 = 2;
/// Answered with the number of bytes of its body.
const COUNT: u8 = 3;

#[derive(Default)]
struct Guarded {
    ends: Mutex<Vec<&'static str>>,
}

struct Session {
    outbox: Arc<Outbox>,
    admitted: bool,
}

impl Service for Guarded {
    type Session = Session;

    fn open(&self, connection: &Connection) -> Session {
        Session {
            outbox: Arc::clone(&connection.outbox),
            admitted: false,
        }
    }

    fn request(&self, session: &mut Session, frame: Frame, _: Option<Charge>) -> bool {
        let body = match frame.head.verb {
            HELLO => Bytes::new(),
            _ if !session.admitted => return false,
            LARGE => Bytes::from(vec![1; 1 << 20]),
            COUNT => Bytes::copy_from_slice(&frame.body.len().to_le_bytes()),
            _ => return false,
        };
        session.admitted = true;
        session.outbox.push(frame.head, &[body]).is_ok()
    }

    fn is_admitted(&self, session: &Session) -> bool {
        session.admitted
    }

    fn close(&self, _: Session, why: Closed) {
        self.ends.lock().unwrap().push(match why {
            Closed::Late => "late",
            Closed::Crowded => "crowded",
            Closed::Slow => "slow",
            Closed::Stuck => "stuck",
            Closed::Frame(_) => "frame",
            Closed::Service => "service",
            _ => "other",
        });
    }
}

impl Guarded {
    fn ended(&self, why: &str) -> usize {
        let ends = self.ends.lock().unwrap();
        ends.iter().filter(|end| **end == why).count()
    }
}

fn serve(options: ServeOptions) -> (Server, Arc<Guarded>) {
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let guarded = Arc::new(Guarded::default());
    let server = Server::start(listener, Arc::clone(&guarded), options).unwrap();
    (server, guarded)
}

fn connect(server: &Server) -> Stream {
    Stream::connect(server.address(), Duration::from_secs(5)).unwrap()
}

fn frame(verb: u8, body: &[u8]) -> Vec<u8> {
    let head = Head {
        verb,
        flags: 0,
        request: 1,
    };
    let mut bytes = Vec::new();
    encode(head, body, &mut bytes).unwrap();
    bytes
}

fn admitted(server: &Server) -> Caller {
    let caller = Caller::connect(server.address(), CallOptions::default()).unwrap();
    caller.call(HELLO, 0, &[]).unwrap();
    caller
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn until(condition: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("it did not come about within ten seconds");
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn idle_sockets_keep_nobody_out_and_cost_few_threads() {
    let options = ServeOptions {
        most_unadmitted: 16,
        hello_wait: Duration::from_secs(60),
        ..ServeOptions::default()
    };
    let counts = Arc::clone(&options.counts);
    let (server, guarded) = serve(options);
    let before = threads();
    let idle: Vec<Stream> = (0..400).map(|_| connect(&server)).collect();
    until(|| count(&counts.displaced) + count(&counts.refused) >= 384);
    until(|| server.connections() <= 16);
    // Other tests run beside this one, each with a handful of threads.
    assert!(threads() < before + 100, "{} {before}", threads());
    let caller = admitted(&server);
    assert_eq!(
        caller
            .call(COUNT, 0, &[Bytes::from_static(b"abc")])
            .unwrap()
            .body[0],
        3
    );
    assert_eq!(count(&counts.open), 1);
    assert!(guarded.ended("crowded") >= 300);
    drop(idle);
    until(|| count(&counts.unadmitted) == 0);
}

#[test]
fn a_byte_now_and_then_does_not_extend_the_time_until_a_client_is_admitted() {
    let options = ServeOptions {
        hello_wait: Duration::from_millis(400),
        ..ServeOptions::default()
    };
    let counts = Arc::clone(&options.counts);
    let (server, guarded) = serve(options);
    let began = Instant::now();
    let mut stream = connect(&server);
    let ended = frame(HELLO, &[7; 60_000]).chunks(1).any(|byte| {
        thread::sleep(Duration::from_millis(20));
        stream.write_all(byte).is_err()
    });
    assert!(ended);
    assert!(began.elapsed() < Duration::from_secs(60));
    until(|| guarded.ended("late") == 1);
    assert_eq!(count(&counts.late), 1);
}

#[test]
fn nor_does_it_extend_the_handshake_of_tls() {
    let folder = tempfile::tempdir().unwrap();
    let Some(made) = Certificates::make(folder.path(), "a slow handshake") else {
        return;
    };
    let config = dyno_serve::tls::server(&made.server(), &made.server_key()).unwrap();
    let listener = Listener::bind(&"localhost:0".parse().unwrap())
        .unwrap()
        .with_tls(config);
    let guarded = Arc::new(Guarded::default());
    let options = ServeOptions {
        hello_wait: Duration::from_millis(400),
        ..ServeOptions::default()
    };
    let server = Server::start(listener, Arc::clone(&guarded), options).unwrap();
    let Address::Tcp { port, .. } = server.address() else {
        panic!("TCP was asked for");
    };
    let mut slow = TcpStream::connect(("localhost", *port)).unwrap();
    // The head of a record of a handshake that announces 16,000 bytes, and then a byte now and
    // then.
    slow.write_all(&[22, 3, 1, 0x3E, 0x80]).unwrap();
    let ended = (0..3000).any(|_| {
        thread::sleep(Duration::from_millis(20));
        slow.write_all(&[1]).is_err()
    });
    assert!(ended);
    until(|| guarded.ended("late") == 1);
    let trusting = dyno_serve::tls::client(&made.root()).unwrap();
    let options = CallOptions {
        tls: Some(trusting),
        ..CallOptions::default()
    };
    let caller = Caller::connect(server.address(), options).unwrap();
    caller.call(HELLO, 0, &[]).unwrap();
}

#[test]
fn a_long_frame_is_refused_until_the_client_is_admitted() {
    let options = ServeOptions {
        most_hello_bytes: 1000,
        most_body_bytes: 1 << 20,
        ..ServeOptions::default()
    };
    let (server, guarded) = serve(options);
    let mut stream = connect(&server);
    stream.write_all(&frame(HELLO, &[1; 1001])[..100]).unwrap();
    until(|| guarded.ended("frame") == 1);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
    let caller = admitted(&server);
    let body = Bytes::from(vec![1; 1 << 20]);
    assert_eq!(
        caller.call(COUNT, 0, &[body]).unwrap().body[..4],
        [0, 0, 16, 0]
    );
    // Another request before the first one that admits ends the connection.
    let unauthenticated = Caller::connect(server.address(), CallOptions::default()).unwrap();
    assert!(unauthenticated.call(COUNT, 0, &[]).is_err());
    until(|| guarded.ended("service") == 1);
}

#[test]
fn half_frames_take_no_more_than_their_share_and_give_way_when_others_wait() {
    let frames = Share::new(4 << 20);
    let options = ServeOptions {
        most_body_bytes: 1 << 20,
        frames: Arc::clone(&frames),
        write_wait: Duration::from_millis(400),
        ..ServeOptions::default()
    };
    let (server, guarded) = serve(options);
    let half = frame(COUNT, &vec![1; 1 << 20]);
    let mut halves: Vec<Stream> = (0..20)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(&frame(HELLO, &[])).unwrap();
            stream
                .set_write_timeout(Some(Duration::from_millis(50)))
                .unwrap();
            stream
        })
        .collect();
    for stream in &mut halves {
        // What the server does not read yet stays with the client.
        let _ = stream.write_all(&half[..half.len() - 1]);
    }
    until(|| frames.is_contended());
    assert!(frames.used_bytes() <= frames.limit_bytes());
    // A client that sends its frame whole gets its turn, since those that stand still are ended.
    let caller = admitted(&server);
    caller
        .call(COUNT, 0, &[Bytes::from(vec![1; 1 << 20])])
        .unwrap();
    assert!(guarded.ended("slow") > 0);
    drop(halves);
    until(|| frames.used_bytes() == 0);
}

#[test]
fn a_client_that_reads_a_little_now_and_then_is_ended() {
    let options = ServeOptions {
        write_wait: Duration::from_millis(500),
        least_rate: 1 << 20,
        ..ServeOptions::default()
    };
    let counts = Arc::clone(&options.counts);
    let (server, guarded) = serve(options);
    let mut slow = connect(&server);
    slow.write_all(&frame(HELLO, &[])).unwrap();
    for _ in 0..64 {
        slow.write_all(&frame(LARGE, &[])).unwrap();
    }
    let reading = thread::spawn(move || {
        let mut some = [0; 4096];
        while slow.read(&mut some).is_ok_and(|bytes| bytes > 0) {
            thread::sleep(Duration::from_millis(50));
            if slow.write_all(&frame(LARGE, &[])).is_err() {
                break;
            }
        }
    });
    until(|| guarded.ended("slow") + guarded.ended("stuck") == 1);
    assert_eq!(count(&counts.slow), 1);
    reading.join().unwrap();
    // One that reads what it asks for stays, however often.
    let quick = admitted(&server);
    for _ in 0..40 {
        quick.call(LARGE, 0, &[]).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_stops_though_its_clients_neither_speak_nor_read() {
    let options = ServeOptions {
        drain_wait: Duration::from_millis(100),
        hello_wait: Duration::from_secs(600),
        write_wait: Duration::from_secs(600),
        ..ServeOptions::default()
    };
    let (mut server, guarded) = serve(options);
    let silent = connect(&server);
    let mut unread = connect(&server);
    unread.write_all(&frame(HELLO, &[])).unwrap();
    for _ in 0..64 {
        unread.write_all(&frame(LARGE, &[])).unwrap();
    }
    until(|| server.connections() == 2);
    server.stop();
    assert_eq!(guarded.ends.lock().unwrap().len(), 2);
    drop((silent, unread));
}
