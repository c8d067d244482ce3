//! Link tests against a server in this process, and what either side refuses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use dyno_machine::{LinkOptions, LinkServer, LinkServerOptions, link};
use dyno_record::Size;
use dyno_serve::Token;

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn options(address: SocketAddr, token: Option<&str>) -> LinkOptions<'static> {
    LinkOptions {
        address,
        token: token.map(|token| Token::new(token).unwrap()),
        size: Size::Tiny,
        now_utc: &|| "2026-11-24T00:00:00Z".to_owned(),
    }
}

#[test]
fn every_limit_of_a_link_is_a_number_above_zero() {
    let server = LinkServer::start(LinkServerOptions::new(any_port(), None)).unwrap();
    let limits = link(&options(server.address(), None)).unwrap();
    let names: Vec<&str> = limits.iter().map(|limit| limit.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "link-round-trip",
            "link-send-1",
            "link-send-4",
            "link-receive-1",
            "link-receive-4"
        ]
    );
    for limit in &limits {
        assert!(limit.value > 0.0 && limit.value.is_finite(), "{limit:?}");
        assert_eq!(limit.n, 5, "{limit:?}");
    }
}

#[test]
fn a_client_without_the_token_is_refused_and_told_so() {
    let token = Token::new("0123456789abcdef").unwrap();
    let server = LinkServer::start(LinkServerOptions::new(any_port(), Some(token))).unwrap();
    for wrong in [None, Some("fedcba9876543210")] {
        let error = link(&options(server.address(), wrong)).unwrap_err();
        assert!(error.to_string().contains("refuses the token"), "{error}");
    }
    assert!(link(&options(server.address(), Some("0123456789abcdef"))).is_ok());
}

#[test]
fn an_address_beyond_this_machine_needs_a_token() {
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let error = LinkServer::start(LinkServerOptions::new(everywhere, None)).unwrap_err();
    assert!(error.to_string().contains("token"), "{error}");
}

#[test]
fn a_full_server_says_so_and_takes_clients_again_when_others_have_left() {
    let options = LinkServerOptions {
        connections: 1,
        ..LinkServerOptions::new(any_port(), None)
    };
    let server = LinkServer::start(options).unwrap();
    let hello = b"dynolnk1\x01\0\0";
    let mut answer = [9];
    let mut first = TcpStream::connect(server.address()).unwrap();
    first.write_all(hello).unwrap();
    first.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [0]);
    let mut second = TcpStream::connect(server.address()).unwrap();
    second.write_all(hello).unwrap();
    second.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [2]);
    drop((first, second));
    // The server notices a close at its next read, so the first attempts may still be refused, or
    // closed without an answer while twice as many connections as it takes are counted.
    let begun = std::time::Instant::now();
    loop {
        let mut third = TcpStream::connect(server.address()).unwrap();
        let asked = third.write_all(hello);
        let answered = asked.and_then(|()| third.read_exact(&mut answer));
        if answered.is_ok() && answer == [0] {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn bytes_that_are_not_a_hello_end_the_connection_and_nothing_else() {
    let server = LinkServer::start(LinkServerOptions::new(any_port(), None)).unwrap();
    for hostile in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"dynolnk1\x01\xff\xff",
        b"dynolnk9\x01\0\0",
    ] {
        let mut socket = TcpStream::connect(server.address()).unwrap();
        socket.write_all(hostile).unwrap();
        let mut answer = Vec::new();
        // A reset, since the server leaves bytes unread, is as good as a close.
        let _ = socket.read_to_end(&mut answer);
        assert_eq!(answer, b"", "{hostile:?}");
    }
    let mut unknown = TcpStream::connect(server.address()).unwrap();
    unknown.write_all(b"dynolnk1\x09\0\0").unwrap();
    let mut answer = [9];
    unknown.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [3]);
    assert!(link(&options(server.address(), None)).is_ok());
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let server = LinkServer::start(LinkServerOptions::new(any_port(), None)).unwrap();
    let address = server.address();
    drop(server);
    let error = link(&options(address, None)).unwrap_err().to_string();
    assert!(error.contains("link-round-trip"), "{error}");
}
