//! Both ends together, and ends that misbehave.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;
use dyno_net::{
    Address, CallOptions, Caller, Charge, Closed, Connection, Decoder, Frame, Head, Listener,
    NetError, Outbox, ServeOptions, Server, Service, Stream, encode,
};

const ECHO: u8 = 1;
/// Answered when the next request comes.
const LATER: u8 = 2;
const NEVER: u8 = 3;
const HANG_UP: u8 = 4;
/// Answered with a megabyte.
const LARGE: u8 = 5;

#[derive(Default)]
struct Echo {
    requests: AtomicU64,
    ends: Mutex<Vec<String>>,
}

struct Session {
    outbox: Arc<Outbox>,
    later: Vec<Frame>,
}

impl Service for Echo {
    type Session = Session;

    fn open(&self, connection: &Connection) -> Session {
        Session {
            outbox: Arc::clone(&connection.outbox),
            later: Vec::new(),
        }
    }

    fn request(&self, session: &mut Session, frame: Frame, _: Option<Charge>) -> bool {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let answer = |frame: Frame| {
            session
                .outbox
                .push(frame.head, &[frame.body])
                .expect("a short frame")
        };
        match frame.head.verb {
            ECHO => answer(frame),
            LATER => {
                session.later.push(frame);
                return true;
            }
            LARGE => {
                let body = Bytes::from(vec![1; 1 << 20]);
                session
                    .outbox
                    .push(frame.head, &[body])
                    .expect("a short frame");
            }
            HANG_UP => return false,
            _ => {}
        }
        session.later.drain(..).for_each(answer);
        true
    }

    fn close(&self, _: Session, why: Closed) {
        self.ends
            .lock()
            .expect("no test panics with it")
            .push(format!("{why:?}"));
    }
}

fn serve(options: ServeOptions) -> (Server, Arc<Echo>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let address = Address::Unix(folder.path().join("s"));
    let echo = Arc::new(Echo::default());
    let listener = Listener::bind(&address).expect("a free place");
    let server = Server::start(listener, Arc::clone(&echo), options).expect("threads");
    (server, echo, folder)
}

fn caller(server: &Server, options: CallOptions) -> Caller {
    Caller::connect(server.address(), options).expect("a listener")
}

fn body(text: &'static str) -> [Bytes; 1] {
    [Bytes::from_static(text.as_bytes())]
}

fn until(condition: impl Fn() -> bool) {
    for _ in 0..5000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it did not come about within five seconds");
}

#[test]
fn requests_are_answered_over_tcp_and_unix_sockets() {
    let (unix, _, _folder) = serve(ServeOptions::default());
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let tcp = Server::start(listener, Arc::new(Echo::default()), ServeOptions::default()).unwrap();
    for server in [&unix, &tcp] {
        let caller = caller(server, CallOptions::default());
        let answer = caller
            .call(ECHO, 9, &[Bytes::from(vec![3; 300_000])])
            .unwrap();
        assert_eq!((answer.head.verb, answer.head.flags), (ECHO, 9));
        assert_eq!(answer.body, vec![3; 300_000]);
    }
}

#[test]
fn answers_come_in_any_order_and_find_their_request() {
    let (server, _, _folder) = serve(ServeOptions::default());
    let caller = caller(&server, CallOptions::default());
    let (answers, answered) = mpsc::channel();
    for (verb, text) in [(LATER, "first"), (LATER, "second"), (ECHO, "third")] {
        let answers = answers.clone();
        caller.send(verb, 0, &body(text), move |answer| {
            answers.send((text, answer.unwrap().body)).unwrap();
        });
    }
    let order: Vec<&str> = (0..3)
        .map(|_| {
            let (text, found) = answered.recv().unwrap();
            assert_eq!(text.as_bytes(), found);
            text
        })
        .collect();
    assert_eq!(order, ["third", "first", "second"]);
}

#[test]
fn many_threads_share_a_connection() {
    let (server, echo, _folder) = serve(ServeOptions::default());
    let caller = caller(
        &server,
        CallOptions {
            window: 7,
            ..CallOptions::default()
        },
    );
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let caller = &caller;
            scope.spawn(move || {
                for at in 0..500_u32 {
                    let sent = Bytes::from(vec![thread as u8; (at * 13 % 9000) as usize]);
                    let answer = caller.call(ECHO, 0, std::slice::from_ref(&sent)).unwrap();
                    assert_eq!(answer.body, sent);
                }
            });
        }
    });
    assert_eq!(echo.requests.load(Ordering::SeqCst), 2000);
}

#[test]
fn a_full_window_and_a_late_answer_are_told_apart() {
    let (server, _, _folder) = serve(ServeOptions::default());
    let options = CallOptions {
        window: 1,
        answer_wait: Some(Duration::from_millis(300)),
        ..CallOptions::default()
    };
    let caller = caller(&server, options);
    let (answers, answered) = mpsc::channel();
    caller.send(NEVER, 0, &[], move |answer| answers.send(answer).unwrap());
    let mut results = vec![caller.call(ECHO, 0, &[])];
    results.push(answered.recv().unwrap());
    let late = results
        .iter()
        .filter(|result| matches!(result, Err(NetError::Late { .. })))
        .count();
    assert!(late >= 1, "{results:?}");
    for error in results.into_iter().filter_map(Result::err) {
        assert_eq!(error.unsent(), matches!(error, NetError::Full { .. }));
    }
    until(|| caller.unanswered() == 0);
    assert_eq!(caller.call(ECHO, 0, &body("again")).unwrap().body, "again");
}

#[test]
fn a_dead_server_fails_everybody_who_waits() {
    let (mut server, _, _folder) = serve(ServeOptions::default());
    let caller = caller(&server, CallOptions::default());
    let (answers, answered) = mpsc::channel();
    for _ in 0..20 {
        let answers = answers.clone();
        caller.send(NEVER, 0, &[], move |answer| answers.send(answer).unwrap());
    }
    caller.call(ECHO, 0, &[]).unwrap();
    server.stop();
    for _ in 0..20 {
        assert!(answered.recv().unwrap().is_err());
    }
    assert!(caller.ended().is_some());
    assert!(caller.call(ECHO, 0, &[]).is_err());
    assert!(Caller::connect(server.address(), CallOptions::default()).is_err());
}

#[test]
fn a_server_ends_a_connection_after_its_last_answer() {
    let (server, echo, _folder) = serve(ServeOptions::default());
    let caller = caller(&server, CallOptions::default());
    let (answers, answered) = mpsc::channel();
    caller.send(ECHO, 0, &body("last"), move |answer| {
        answers.send(answer).unwrap()
    });
    assert!(matches!(
        caller.call(HANG_UP, 0, &[]),
        Err(NetError::Closed { .. })
    ));
    assert_eq!(answered.recv().unwrap().unwrap().body, "last");
    until(|| server.connections() == 0);
    assert_eq!(*echo.ends.lock().unwrap(), ["Service"]);
}

#[test]
fn bad_bytes_end_their_own_connection_only() {
    let options = ServeOptions {
        most_body_bytes: 1000,
        ..ServeOptions::default()
    };
    let (server, echo, _folder) = serve(options);
    let good = caller(&server, CallOptions::default());
    let head = Head {
        verb: ECHO,
        flags: 0,
        request: 1,
    };
    let mut frame = Vec::new();
    encode(head, b"abc", &mut frame).unwrap();
    let mut changed = frame.clone();
    changed[18] ^= 1;
    let mut lying = frame.clone();
    lying[11] = 0x7F;
    for (bytes, reason) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "Magic"),
        (changed, "Checksum"),
        (lying, "TooLong"),
        (frame[..9].to_vec(), "Torn"),
        (frame[..17].to_vec(), "Torn"),
    ] {
        let mut stream = Stream::connect(server.address(), Duration::from_secs(1)).unwrap();
        stream.write_all(&bytes).unwrap();
        if reason == "Torn" {
            stream.shutdown();
        }
        // The end is an end of stream, or a reset when bytes were left unread.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(rest, b"");
        until(|| !echo.ends.lock().unwrap().is_empty());
        let end = echo.ends.lock().unwrap().pop().unwrap();
        assert!(end.contains(reason), "{reason}: {end}");
    }
    assert_eq!(good.call(ECHO, 0, &body("on")).unwrap().body, "on");
}

#[test]
fn a_client_that_does_not_read_is_read_from_no_more_and_ended() {
    let options = ServeOptions {
        outbox_bytes: 2 << 20,
        write_wait: Duration::from_millis(200),
        ..ServeOptions::default()
    };
    let (server, echo, _folder) = serve(options);
    let mut stream = Stream::connect(server.address(), Duration::from_secs(1)).unwrap();
    let mut frames = Vec::new();
    for request in 0..100 {
        let head = Head {
            verb: LARGE,
            flags: 0,
            request,
        };
        encode(head, b"", &mut frames).unwrap();
    }
    stream.write_all(&frames).unwrap();
    until(|| !echo.ends.lock().unwrap().is_empty());
    assert!(echo.requests.load(Ordering::SeqCst) < 10);
    assert_eq!(*echo.ends.lock().unwrap(), ["Stuck"]);
}

#[test]
fn one_connection_too_many_is_closed() {
    let options = ServeOptions {
        most_connections: 1,
        ..ServeOptions::default()
    };
    let (server, _, _folder) = serve(options);
    let first = caller(&server, CallOptions::default());
    first.call(ECHO, 0, &[]).unwrap();
    let second = caller(&server, CallOptions::default());
    assert!(second.call(ECHO, 0, &[]).is_err());
    assert_eq!(server.refused(), 1);
    drop(first);
    until(|| server.connections() == 0);
    caller(&server, CallOptions::default())
        .call(ECHO, 0, &[])
        .unwrap();
}

#[test]
fn an_answer_that_is_no_frame_ends_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener::bind(&Address::Unix(folder.path().join("s"))).unwrap();
    let caller = Caller::connect(listener.address(), CallOptions::default()).unwrap();
    let mut other = listener.accept().unwrap();
    let (answers, answered) = mpsc::channel();
    caller.send(ECHO, 0, &body("x"), move |answer| {
        answers.send(answer).unwrap()
    });
    let mut decoder = Decoder::new(100);
    while decoder.next_frame().unwrap().is_none() {
        decoder.read_from(&mut other).unwrap();
    }
    other.write_all(b"nonsense").unwrap();
    let error = answered.recv().unwrap().unwrap_err();
    assert!(error.to_string().contains("another protocol"), "{error}");
}

#[test]
fn a_client_that_keeps_sending_does_not_keep_a_server_from_stopping() {
    let options = ServeOptions::default();
    let patience = options.drain_wait + Duration::from_secs(5);
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let echo = Arc::new(Echo::default());
    let mut server = Server::start(listener, Arc::clone(&echo), options).unwrap();
    let mut sending = Stream::connect(server.address(), Duration::from_secs(5)).unwrap();
    let mut reading = sending.try_clone().unwrap();
    let head = Head {
        verb: ECHO,
        flags: 0,
        request: 1,
    };
    let mut frames = Vec::new();
    for _ in 0..4096 {
        encode(head, b"", &mut frames).unwrap();
    }
    std::thread::spawn(move || while sending.write_all(&frames).is_ok() {});
    std::thread::spawn(move || {
        let mut answers = vec![0; 1 << 16];
        while reading.read(&mut answers).is_ok_and(|count| count > 0) {}
    });
    until(|| echo.requests.load(Ordering::SeqCst) > 0);
    std::thread::sleep(Duration::from_millis(200));
    let (ends, ended) = mpsc::channel();
    std::thread::spawn(move || {
        server.stop();
        ends.send(())
    });
    ended
        .recv_timeout(patience)
        .expect("the server stops while its client sends");
    assert_eq!(echo.ends.lock().unwrap().len(), 1);
}
