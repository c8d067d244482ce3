//! Clients that do not say who they are: they have little time and room, and keep nobody out.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dyno_net::{
    Address, FrameRef, Handler, Listener, Outbound, PortId, Reactor, ReactorOptions, encode,
};

use crate::head;

const HELLO: u8 = 1;
const OTHER: u8 = 2;

/// Admits a client that says hello, and answers every frame with itself.
#[derive(Default)]
struct Guarded {
    known: HashSet<PortId>,
}

impl Handler for Guarded {
    fn frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        if frame.head.verb == HELLO {
            self.known.insert(port);
        }
        match out.send(frame.head, &[frame.body]) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn is_admitted(&self, port: PortId) -> bool {
        self.known.contains(&port)
    }
}

struct Server {
    address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Server {
    fn start(change: impl FnOnce(&mut ReactorOptions)) -> Server {
        let mut options = ReactorOptions {
            most_hello_bytes: 1_000,
            ..ReactorOptions::default()
        };
        change(&mut options);
        let address: Address = "127.0.0.1:0".parse().expect("an address");
        let mut reactor = Reactor::new(options).expect("a reactor");
        let listener = Listener::bind(&address).expect("a free port");
        let address = reactor.listen(listener).expect("a listener").to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut handler = Guarded::default();
            while !stopped.load(Ordering::Acquire) {
                let frames = reactor.poll(&mut handler).expect("it polls");
                let wait = Duration::from_millis(5);
                reactor.idle(frames > 0, wait).expect("it sleeps");
            }
            reactor.refused()
        });
        Server {
            address,
            stop,
            thread: Some(thread),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        let wait = Some(Duration::from_secs(30));
        stream.set_read_timeout(wait).expect("a time limit");
        stream
    }

    /// Connections that it refused.
    fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("no panic")
    }
}

fn frame(verb: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(head(verb, 7), body, &mut bytes).expect("short enough");
    bytes
}

/// What comes back for a frame; nothing when the connection was closed.
fn answer(stream: &mut TcpStream, frame: &[u8]) -> Option<Vec<u8>> {
    stream.write_all(frame).ok()?;
    let mut answer = vec![0; frame.len()];
    stream.read_exact(&mut answer).ok()?;
    Some(answer)
}

fn is_closed(stream: &mut TcpStream) -> bool {
    // A close with bytes unread is a reset.
    !matches!(stream.read(&mut [0]), Ok(1..))
}

#[test]
fn idle_connections_keep_nobody_out() {
    let server = Server::start(|options| options.most_unadmitted = 8);
    let mut idle: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    let hello = frame(HELLO, b"me");
    let mut client = server.connect();
    assert_eq!(answer(&mut client, &hello), Some(hello.clone()));
    // The first ones have given their places up. A client that was admitted before stays connected.
    assert!(is_closed(&mut idle[0]));
    let _more: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    assert_eq!(answer(&mut server.connect(), &hello), Some(hello.clone()));
    let other = frame(OTHER, &[7; 100_000]);
    assert_eq!(answer(&mut client, &other), Some(other));
    assert!(server.stop() >= 100);
}

#[test]
fn a_silent_or_slow_client_is_let_go_in_time() {
    let server = Server::start(|options| options.hello_wait = Duration::from_millis(50));
    let (mut silent, mut slow) = (server.connect(), server.connect());
    slow.write_all(&frame(HELLO, b"me")[..5])
        .expect("it listens");
    // Another frame than a hello admits nobody.
    let (mut other, bytes) = (server.connect(), frame(OTHER, b"x"));
    assert_eq!(answer(&mut other, &bytes), Some(bytes));
    for stream in [&mut silent, &mut slow, &mut other] {
        assert!(is_closed(stream));
    }
    assert_eq!(server.stop(), 3);
}

#[test]
fn a_long_frame_is_taken_from_those_that_are_admitted_alone() {
    let server = Server::start(|_| {});
    let long = frame(OTHER, &[7; 1_001]);
    let mut unauthenticated = server.connect();
    // Its header alone ends the connection.
    unauthenticated.write_all(&long[..16]).expect("it listens");
    assert!(is_closed(&mut unauthenticated));
    let mut client = server.connect();
    let hello = frame(HELLO, &[7; 1_000]);
    assert_eq!(answer(&mut client, &hello), Some(hello));
    assert_eq!(answer(&mut client, &long), Some(long));
    server.stop();
}
