//! Peers that are late, slow, broken or too many.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use dyno_net::{
    Client, ClientOptions, NetError, Port, PortOptions, Reactor, ReactorOptions, SendError, Stream,
    encode,
};

use crate::polled::{ECHO, HANG_UP, LARGE, NEVER, Polled, Verbs, until};
use crate::{head, options};

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
fn a_connection_within_the_process_may_hold_more_than_all_others_together() {
    let few = ReactorOptions {
        most_held_bytes: 100_000,
        ..ReactorOptions::default()
    };
    let small = PortOptions {
        outbox_bytes: 10_000,
        ..PortOptions::default()
    };
    let mut reactor = Reactor::new(few).unwrap();
    let (mut near, mut far) = Port::pair(64 << 10, &small).unwrap();
    far.set_outbox_bytes(usize::MAX);
    let id = reactor.attach(far).unwrap();
    let body = vec![7u8; 1 << 20];
    for request in 0..3 {
        reactor.send(id, head(ECHO, request), &[&body]).unwrap();
    }
    let mut handler = Verbs::default();
    let mut found = Vec::new();
    until("all frames", || {
        reactor.poll(&mut handler).unwrap();
        assert_eq!(reactor.connections(), (0, 1));
        near.poll(|frame, _| {
            found.push((frame.head.request, frame.body.len()));
            ControlFlow::Continue(())
        })
        .unwrap();
        found.len() == 3
    });
    assert_eq!(found, [(0, 1 << 20), (1, 1 << 20), (2, 1 << 20)]);
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
