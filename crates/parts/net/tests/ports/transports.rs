//! The same over every transport, and from one to another.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use dyno_net::exchange::{Echo, Exchange, exchange};
use dyno_net::{
    Address, CallOptions, Caller, Charge, Client, ClientOptions, Connection, Frame, Listener,
    PortOptions, Reactor, ReactorOptions, ServeOptions, Server, Service, TransportKind,
};

use crate::polled::{ECHO, Polled, until};
use crate::{options, unix};

#[test]
fn requests_are_answered_over_every_transport() {
    let (unix, _folder) = unix();
    let tcp = "127.0.0.1:0";
    // How a connection of each kind comes about. A kind that is added does not compile until it is
    // here.
    let made = |kind| match kind {
        TransportKind::Ring => vec![(tcp, true), (&*unix, true)],
        TransportKind::Tcp => vec![(tcp, false)],
        TransportKind::Unix => vec![(&*unix, false)],
        // It needs certificates: `tls.rs` does the same with them.
        TransportKind::Tls => Vec::new(),
    };
    let all = TransportKind::ALL.map(|kind| made(kind).into_iter().map(move |way| (way, kind)));
    for ((address, ring), kind) in all.into_iter().flatten() {
        let server = Polled::start(address, ReactorOptions::default());
        let mut client = Client::connect(&server.address, &options(ring)).unwrap();
        assert_eq!(client.transport().kind, kind, "{}", client.transport());
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
        client.transport().to_string(),
        "tcp: the server offers no rings"
    );
    let server = Polled::start("127.0.0.1:0", one);
    let mut first = Client::connect(&server.address, &options(true)).unwrap();
    let mut second = Client::connect(&server.address, &options(true)).unwrap();
    assert_eq!(first.transport().kind, TransportKind::Ring);
    assert_eq!(
        second.transport().to_string(),
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
    assert_eq!(client.transport().kind, TransportKind::Tcp);
    assert!(
        client.transport().why.contains("power of two"),
        "{}",
        client.transport()
    );
}

struct Old;

impl Service for Old {
    type Session = Arc<dyno_net::Outbox>;

    fn open(&self, connection: &Connection) -> Self::Session {
        Arc::clone(&connection.outbox)
    }

    /// Hangs up on what it does not know, as a broker does.
    fn request(&self, outbox: &mut Self::Session, frame: Frame, _: Option<Charge>) -> bool {
        frame.head.verb == ECHO && outbox.push(frame.head, &[frame.body]).is_ok()
    }

    fn close(&self, _: Self::Session, _: dyno_net::Closed) {}
}

#[test]
fn polled_and_blocking_ends_understand_each_other() {
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let server = Server::start(listener, Arc::new(Old), ServeOptions::default()).unwrap();
    let mut client = Client::connect(server.address(), &options(true)).unwrap();
    assert_eq!(client.transport().kind, TransportKind::Tcp);
    assert!(
        client.transport().why.contains("offers no ring"),
        "{}",
        client.transport()
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
