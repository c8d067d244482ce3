//! Polled connections over every carrier, and peers that misbehave.

mod polled;

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use dyno_net::exchange::{Echo, Exchange, exchange};
use dyno_net::{
    Address, CallOptions, Caller, CarrierKind, Client, ClientOptions, Connection, Frame, Head,
    Listener, NetError, Port, PortOptions, Reactor, ReactorOptions, SendError, ServeOptions,
    Server, Service, SharedClient, Stream, encode,
};
use polled::{ECHO, HANG_UP, LARGE, NEVER, Polled, until};

fn unix() -> (String, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    (
        format!("unix:{}", folder.path().join("s").display()),
        folder,
    )
}

fn options(ring: bool) -> ClientOptions {
    ClientOptions {
        port: PortOptions {
            ring,
            ..PortOptions::default()
        },
        ..ClientOptions::default()
    }
}

fn head(verb: u8, request: u32) -> Head {
    Head {
        verb,
        flags: 0,
        request,
    }
}

#[test]
fn requests_are_answered_over_every_carrier() {
    let (unix, _folder) = unix();
    for (address, ring, kind) in [
        ("127.0.0.1:0", true, CarrierKind::Ring),
        ("127.0.0.1:0", false, CarrierKind::Tcp),
        (&unix, true, CarrierKind::Ring),
        (&unix, false, CarrierKind::Unix),
    ] {
        let server = Polled::start(address, ReactorOptions::default());
        let mut client = Client::connect(&server.address, &options(ring)).unwrap();
        assert_eq!(client.carrier().kind, kind, "{}", client.carrier());
        let mut answer = Vec::new();
        // The longest is longer than a ring.
        for length in [0, 1, 1000, 70_000, 3_000_000] {
            let sent: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let head = client.call(ECHO, 9, &[&sent], &mut answer).unwrap();
            assert_eq!((head.verb, head.flags), (ECHO, 9));
            assert!(answer == sent, "{kind} {length}");
        }
        assert!(server.saw(&format!("open {kind}")));
    }
}

#[test]
fn an_exchange_is_verified_in_any_window() {
    for ring in [true, false] {
        for window in [1, 8, 64] {
            let mut reactor = Reactor::new(ReactorOptions::default()).unwrap();
            let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
            let address = reactor.listen(listener).unwrap();
            let stop = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut echo = Echo::new(10).unwrap();
                    while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                        let count = reactor.poll(&mut echo).unwrap();
                        reactor.idle(count > 0, Duration::from_secs(1)).unwrap();
                    }
                });
                let mut client = Client::connect(&address, &options(ring)).unwrap();
                let plan = Exchange {
                    request_bytes: 1024,
                    answer_bytes: 10,
                    window,
                    duration: Duration::from_millis(30),
                };
                let mut count = 0;
                let done = exchange(&mut client, &plan, |_| count += 1).unwrap();
                assert!(done.answers > 0 && done.answers == count);
                let wrong = Exchange {
                    answer_bytes: 11,
                    ..plan
                };
                assert!(exchange(&mut client, &wrong, |_| {}).is_err());
                stop.store(true, std::sync::atomic::Ordering::SeqCst);
            });
        }
    }
}

#[test]
fn a_server_without_rings_is_talked_to_over_tcp_and_the_client_says_why() {
    let none = ReactorOptions {
        most_rings: 0,
        ..ReactorOptions::default()
    };
    let one = ReactorOptions {
        most_rings: 1,
        ..ReactorOptions::default()
    };
    let server = Polled::start("127.0.0.1:0", none);
    let client = Client::connect(&server.address, &options(true)).unwrap();
    assert_eq!(
        client.carrier().to_string(),
        "tcp: the server offers no rings"
    );
    let server = Polled::start("127.0.0.1:0", one);
    let mut first = Client::connect(&server.address, &options(true)).unwrap();
    let mut second = Client::connect(&server.address, &options(true)).unwrap();
    assert_eq!(first.carrier().kind, CarrierKind::Ring);
    assert_eq!(
        second.carrier().to_string(),
        "tcp: the server has no ring left"
    );
    for client in [&mut first, &mut second] {
        client.call(ECHO, 0, &[b"x"], &mut Vec::new()).unwrap();
    }
    let small = ClientOptions {
        port: PortOptions {
            most_ring_bytes: 8 << 10,
            ..PortOptions::default()
        },
        ..ClientOptions::default()
    };
    let server = Polled::start("127.0.0.1:0", ReactorOptions::default());
    let client = Client::connect(&server.address, &small).unwrap();
    assert_eq!(client.carrier().kind, CarrierKind::Tcp);
    assert!(
        client.carrier().why.contains("power of two"),
        "{}",
        client.carrier()
    );
}

struct Old;

impl Service for Old {
    type Session = Arc<dyno_net::Outbox>;

    fn open(&self, connection: &Connection) -> Self::Session {
        Arc::clone(&connection.outbox)
    }

    /// Hangs up on what it does not know, as a broker does.
    fn request(&self, outbox: &mut Self::Session, frame: Frame) -> bool {
        frame.head.verb == ECHO && outbox.push(frame.head, &[frame.body]).is_ok()
    }

    fn close(&self, _: Self::Session, _: dyno_net::Closed) {}
}

#[test]
fn polled_and_blocking_ends_understand_each_other() {
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let server = Server::start(listener, Arc::new(Old), ServeOptions::default()).unwrap();
    let mut client = Client::connect(server.address(), &options(true)).unwrap();
    assert_eq!(client.carrier().kind, CarrierKind::Tcp);
    assert!(
        client.carrier().why.contains("offers no ring"),
        "{}",
        client.carrier()
    );
    let mut answer = Vec::new();
    client.call(ECHO, 0, &[b"a", b"b"], &mut answer).unwrap();
    assert_eq!(answer, b"ab");
    let polled = Polled::start("127.0.0.1:0", ReactorOptions::default());
    let caller = Caller::connect(&polled.address, CallOptions::default()).unwrap();
    let body = bytes::Bytes::from_static(b"abc");
    assert_eq!(caller.call(ECHO, 0, &[body]).unwrap().body, "abc");
}

#[test]
fn many_connections_on_one_thread() {
    let server = Polled::start("127.0.0.1:0", ReactorOptions::default());
    let mut clients: Vec<Client> = (0..60)
        .map(|at| Client::connect(&server.address, &options(at % 3 == 0)).unwrap())
        .collect();
    for round in 0..5_u64 {
        for (at, client) in clients.iter_mut().enumerate() {
            let body = vec![at as u8; 100 * at];
            for token in 0..4 {
                client.send(ECHO, 0, &[&body], token + round).unwrap();
            }
            client.flush().unwrap();
        }
        for (at, client) in clients.iter_mut().enumerate() {
            let mut tokens = Vec::new();
            while tokens.len() < 4 {
                client
                    .wait(Duration::from_secs(10), |answer| {
                        assert_eq!(answer.result.unwrap().body, vec![at as u8; 100 * at]);
                        tokens.push(answer.token);
                    })
                    .unwrap();
            }
            assert_eq!(tokens, [round, round + 1, round + 2, round + 3]);
        }
    }
    drop(clients);
}

#[test]
fn many_threads_share_a_client() {
    for ring in [true, false] {
        let server = Polled::start("127.0.0.1:0", ReactorOptions::default());
        let options = ClientOptions {
            window: 7,
            spin: Duration::from_micros(20),
            ..options(ring)
        };
        let client = SharedClient::connect(&server.address, &options).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..5_u32 {
                let client = client.clone();
                scope.spawn(move || {
                    for at in 0..200_u32 {
                        let sent = vec![thread as u8; (at * 131 % 9000) as usize];
                        let other = client.begin(ECHO, 0, &[b"other"]).unwrap();
                        assert_eq!(client.call(ECHO, 0, &[&sent]).unwrap().body, sent);
                        assert_eq!(other.wait().unwrap().body, "other");
                    }
                });
            }
        });
        assert_eq!(client.unanswered(), 0);
    }
}

#[test]
fn everybody_who_waits_is_told_of_the_end() {
    for ring in [true, false] {
        let mut server = Polled::start("127.0.0.1:0", ReactorOptions::default());
        let client = SharedClient::connect(&server.address, &options(ring)).unwrap();
        client.call(ECHO, 0, &[]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(client.call(NEVER, 0, &[]).is_err()));
            }
            until("requests under way", || client.unanswered() == 4);
            drop(server.stop());
        });
        assert!(client.ended().is_some());
        assert!(client.call(ECHO, 0, &[]).is_err());
    }
}

#[test]
fn a_full_window_and_a_late_answer_are_told_apart() {
    for ring in [true, false] {
        let server = Polled::start("127.0.0.1:0", ReactorOptions::default());
        let options = ClientOptions {
            window: 1,
            answer_wait: Some(Duration::from_millis(100)),
            ..options(ring)
        };
        let mut client = Client::connect(&server.address, &options).unwrap();
        client.send(NEVER, 0, &[], 5).unwrap();
        let full = client.send(ECHO, 0, &[], 6).unwrap_err();
        assert!(matches!(full, NetError::Full { .. }) && full.unsent());
        let mut late = None;
        until("the deadline", || {
            let wait = Duration::from_millis(10);
            client
                .wait(wait, |answer| {
                    late = Some((answer.token, answer.result.unwrap_err()))
                })
                .unwrap();
            late.is_some()
        });
        let late = late.unwrap();
        assert!(
            matches!(late, (5, NetError::Late { wait_ms: 100, .. })),
            "{late:?}"
        );
        let mut answer = Vec::new();
        client.call(ECHO, 0, &[b"again"], &mut answer).unwrap();
        assert_eq!(answer, b"again");
    }
}

#[test]
fn a_slow_reader_is_read_from_no_more_and_ended_and_others_go_on() {
    for ring in [true, false] {
        let options_of_server = ReactorOptions {
            port: PortOptions {
                outbox_bytes: 2 << 20,
                write_wait: Duration::from_millis(300),
                ..PortOptions::default()
            },
            ..ReactorOptions::default()
        };
        let server = Polled::start("127.0.0.1:0", options_of_server);
        let mut slow = Port::connect(&server.address, &options(ring).port).unwrap();
        for request in 0..200 {
            slow.send(head(LARGE, request), &[]).unwrap();
        }
        slow.flush().unwrap();
        let mut other = Client::connect(&server.address, &options(ring)).unwrap();
        let mut answer = Vec::new();
        until("the end of the slow one", || {
            other.call(ECHO, 0, &[b"on"], &mut answer).unwrap();
            server.saw("Stuck")
        });
        assert_eq!(answer, b"on");
    }
}

#[test]
fn a_peer_that_reads_nothing_fills_a_bounded_backlog() {
    let small = PortOptions {
        outbox_bytes: 10_000,
        write_wait: Duration::from_millis(100),
        ..PortOptions::default()
    };
    let (mut one, mut other) = Port::pair(4096, &small).unwrap();
    let mut sent = 0_u32;
    let full = loop {
        match one.send(head(1, sent), &[&[3; 500]]) {
            Ok(()) => sent += 1,
            Err(full) => break full,
        }
    };
    assert!(
        matches!(
            full,
            SendError::Full {
                most_bytes: 10_000,
                ..
            }
        ),
        "{full:?}"
    );
    assert!(one.waiting_bytes() <= 10_000 + 516);
    assert!(!one.flush().unwrap());
    // All of it comes, in order, once the peer reads.
    let mut found = 0;
    until("all frames", || {
        other
            .poll(|frame, _| {
                assert_eq!((frame.head.request, frame.body), (found, &[3; 500][..]));
                found += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        let _ = one.flush().unwrap();
        found == sent
    });
    for request in 0..40 {
        // What does not fit any more is refused, as above.
        let _ = one.send(head(1, request), &[&[3; 500]]);
    }
    until("the end", || one.flush().is_err());
}

#[test]
fn bad_bytes_end_their_own_connection_only() {
    let options_of_server = ReactorOptions {
        port: PortOptions {
            most_body_bytes: 1000,
            ..PortOptions::default()
        },
        ..ReactorOptions::default()
    };
    let server = Polled::start("127.0.0.1:0", options_of_server);
    let mut good = Client::connect(&server.address, &options(true)).unwrap();
    let mut whole = Vec::new();
    encode(head(ECHO, 1), b"abc", &mut whole).unwrap();
    let mut changed = whole.clone();
    changed[18] ^= 1;
    let mut lying = whole.clone();
    lying[11] = 0x7F;
    let mut reserved = Vec::new();
    encode(head(250, 1), b"", &mut reserved).unwrap();
    for (bytes, reason) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "Magic"),
        (changed, "Checksum"),
        (lying, "TooLong"),
        (whole[..9].to_vec(), "Torn"),
        (whole[..17].to_vec(), "Torn"),
        (reserved, "Service"),
    ] {
        let mut stream = Stream::connect(&server.address, Duration::from_secs(5)).unwrap();
        // A whole frame first, or the handler never hears of the connection.
        stream.write_all(&whole).unwrap();
        let mut echoed = vec![0; whole.len()];
        stream.read_exact(&mut echoed).unwrap();
        stream.write_all(&bytes).unwrap();
        if reason == "Torn" {
            stream.shutdown();
        }
        // The end is an end of stream, or a reset when bytes were left unread.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(rest, b"");
        until(reason, || server.saw(reason));
    }
    let mut answer = Vec::new();
    good.call(ECHO, 0, &[b"on"], &mut answer).unwrap();
    assert_eq!(answer, b"on");
}

#[test]
fn a_handler_ends_a_connection_after_its_last_answer() {
    for ring in [true, false] {
        let server = Polled::start("127.0.0.1:0", ReactorOptions::default());
        let mut client = Client::connect(&server.address, &options(ring)).unwrap();
        client.send(LARGE, 0, &[], 1).unwrap();
        client.send(HANG_UP, 0, &[], 2).unwrap();
        let mut found = Vec::new();
        let end = loop {
            let polled = client.wait(Duration::from_secs(10), |answer| {
                found.push((
                    answer.token,
                    answer.result.map(|frame| frame.body.len()).ok(),
                ));
            });
            if let Err(end) = polled {
                break end;
            }
        };
        assert!(matches!(end, NetError::Closed { .. }), "{end}");
        assert_eq!(found, [(1, Some(1 << 20)), (2, None)]);
        assert!(server.saw("Service"));
    }
}

#[test]
fn one_connection_too_many_is_closed() {
    let options_of_server = ReactorOptions {
        most_connections: 1,
        ..ReactorOptions::default()
    };
    let mut server = Polled::start("127.0.0.1:0", options_of_server);
    let mut first = Client::connect(&server.address, &options(false)).unwrap();
    first.call(ECHO, 0, &[], &mut Vec::new()).unwrap();
    let second = Client::connect(&server.address, &options(false));
    let refused = second.and_then(|mut client| client.call(ECHO, 0, &[], &mut Vec::new()));
    assert!(refused.is_err());
    let reactor = server.stop().expect("it ran");
    assert_eq!((reactor.refused(), reactor.connections()), (1, (1, 0)));
}

#[test]
fn a_connection_moves_to_another_reactor() {
    let mut server = Polled::start("127.0.0.1:0", ReactorOptions::default());
    let mut client = Client::connect(&server.address, &options(true)).unwrap();
    let mut answer = Vec::new();
    client.call(ECHO, 0, &[b"a"], &mut answer).unwrap();
    let mut first = server.stop().expect("it ran");
    let mut second = Reactor::new(ReactorOptions::default()).unwrap();
    struct Ids(Vec<dyno_net::PortId>);
    impl dyno_net::Handler for Ids {
        fn frame(
            &mut self,
            port: dyno_net::PortId,
            frame: dyno_net::FrameRef<'_>,
            out: &mut dyno_net::Outbound,
        ) -> ControlFlow<()> {
            self.0.push(port);
            match out.send(frame.head, &[frame.body]) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        }
    }
    let mut ids = Ids(Vec::new());
    client.send(ECHO, 0, &[b"b"], 1).unwrap();
    client.flush().unwrap();
    until("the frame", || first.poll(&mut ids).unwrap() > 0);
    let port = first.detach(ids.0[0]).expect("it lives");
    assert!(first.detach(ids.0[0]).is_none());
    second.attach(port).unwrap();
    client.send(ECHO, 0, &[b"c"], 2).unwrap();
    client.flush().unwrap();
    until("the frame", || second.poll(&mut ids).unwrap() > 0);
    let mut tokens = Vec::new();
    until("both answers", || {
        client.poll(|answer| tokens.push(answer.token)).unwrap();
        tokens == [1, 2]
    });
}

#[test]
fn a_client_connects_again_after_its_server_has_come_back() {
    let mut server = Polled::start("127.0.0.1:0", ReactorOptions::default());
    let Address::Tcp { port, .. } = server.address else {
        panic!("it listens on TCP");
    };
    let mut client = Client::connect(&server.address, &options(true)).unwrap();
    let mut answer = Vec::new();
    client.call(ECHO, 0, &[b"a"], &mut answer).unwrap();
    drop(server.stop());
    assert!(client.call(ECHO, 0, &[b"b"], &mut answer).is_err());
    assert!(client.ended().is_some());
    let server = Polled::start(&format!("127.0.0.1:{port}"), ReactorOptions::default());
    let mut client = Client::connect(&server.address, &options(true)).unwrap();
    client.call(ECHO, 0, &[b"c"], &mut answer).unwrap();
    assert_eq!(answer, b"c");
}
