//! The proxy passes bytes, and cuts when it was told to.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_net::{Address, Listener, Stream};
use dyno_pubsub_check::proxy::{Protocol, Proxy};
use dyno_sim::Random;

/// A frame of 16 bytes without a body.
fn frame(verb: u8) -> [u8; 16] {
    let mut bytes = [0; 16];
    (bytes[0], bytes[1], bytes[2]) = (0xd1, 1, verb);
    bytes
}

/// Counts the frames that it gets, and sends each back.
fn server(dir: &std::path::Path) -> (Address, Arc<AtomicU64>) {
    let address = Address::Unix(dir.join("server.sock"));
    let listener = Listener::bind(&address).expect("a new socket");
    let got = Arc::new(AtomicU64::new(0));
    let count = got.clone();
    thread::spawn(move || {
        while let Ok(mut stream) = listener.accept() {
            let count = count.clone();
            thread::spawn(move || {
                let mut bytes = [0; 16];
                while stream.read_exact(&mut bytes).is_ok() {
                    count.fetch_add(1, Ordering::SeqCst);
                    if stream.write_all(&bytes).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, got)
}

struct Setup {
    proxy: Proxy,
    got: Arc<AtomicU64>,
    _dir: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let (target, got) = server(dir.path());
        let listen = Address::Unix(dir.path().join("proxy.sock"));
        let committing = vec![5];
        let proxy =
            Proxy::start(&listen, target, Protocol::Frames { committing }).expect("a proxy");
        Self {
            _dir: dir,
            proxy,
            got,
        }
    }

    fn connect(&self) -> Stream {
        Stream::connect(self.proxy.address(), Duration::from_secs(5)).expect("a connection")
    }
}

/// Sends a frame; whether its answer came.
fn ask(stream: &mut Stream, verb: u8) -> bool {
    let mut answer = [0; 16];
    let sent = stream.write_all(&frame(verb)).is_ok();
    sent && stream.read_exact(&mut answer).is_ok() && answer == frame(verb)
}

#[test]
fn a_commit_reaches_the_server_and_its_answer_does_not_come_back() {
    let setup = Setup::new();
    let mut stream = setup.connect();
    assert!(ask(&mut stream, 5));
    setup.proxy.control().arm(1);
    assert!(ask(&mut stream, 3), "only commits are cut");
    assert!(!ask(&mut stream, 5));
    // The client hears of the cut before the server has read the commit.
    let deadline = Instant::now() + Duration::from_secs(5);
    while setup.got.load(Ordering::SeqCst) < 3 {
        assert!(Instant::now() < deadline, "the commit did not arrive");
        thread::yield_now();
    }
    let mut again = setup.connect();
    assert!(ask(&mut again, 5), "one cut was asked for");
    let counts = setup.proxy.control().counts();
    assert_eq!((counts.connections, counts.cut_in_commit), (2, 1));
}

#[test]
fn any_connection_can_be_cut_and_a_new_one_goes_to_the_new_target() {
    let setup = Setup::new();
    let mut stream = setup.connect();
    assert!(ask(&mut stream, 1));
    assert!(setup.proxy.control().cut_one(&mut Random::new(1)));
    assert!(!ask(&mut stream, 1));
    let other = tempfile::tempdir().unwrap();
    let (target, got) = server(other.path());
    setup.proxy.control().set_target(target);
    assert!(ask(&mut setup.connect(), 1));
    assert_eq!(got.load(Ordering::SeqCst), 1);
}

#[test]
fn a_server_that_is_away_closes_the_connection() {
    let setup = Setup::new();
    let nowhere = Address::Unix("/nonexistent/server.sock".into());
    setup.proxy.control().set_target(nowhere);
    assert!(!ask(&mut setup.connect(), 1));
}
