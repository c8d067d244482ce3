//! Clients that send too much, read nothing, or have no right to be here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use dyno_certificates::Certificates;
use dyno_net::{Address, Stream};
use dyno_serve::{Token, tls};
use dyno_txn_resp::Options;
use support::{Client, command, serve, serve_with};

const TOKEN: &str = "0123456789abcdef";

fn with_token(options: &mut Options) {
    options.token = Some(Token::new(TOKEN).unwrap());
}

#[test]
fn nothing_is_served_without_the_token() {
    let served = serve_with(1, with_token);
    let mut client = served.client();
    assert_eq!(client.ask("get k"), "-NOAUTH Authentication required.\r\n");
    assert_eq!(client.ask("ping"), "-NOAUTH Authentication required.\r\n");
    assert!(
        client
            .ask("hello 3")
            .starts_with("-NOAUTH HELLO must be called")
    );
    assert!(client.ask("auth wrong").starts_with("-WRONGPASS"));
    assert!(
        client
            .ask(&format!("auth other {TOKEN}"))
            .starts_with("-WRONGPASS")
    );
    assert_eq!(client.ask(&format!("auth {TOKEN}")), "+OK\r\n");
    assert_eq!(client.ask("get k"), "$-1\r\n");
    assert_eq!(client.ask("reset"), "+RESET\r\n");
    assert_eq!(client.ask("get k"), "-NOAUTH Authentication required.\r\n");
    let hello = format!("hello 3 auth default {TOKEN} setname me");
    assert!(client.ask(&hello).starts_with("%7\r\n"));
    assert_eq!(client.ask("client getname"), "$2\r\nme\r\n");
    // Before the token, commands are short.
    for (bytes, error) in [
        (&b"*11\r\n"[..], "unauthenticated multibulk length"),
        (
            b"*2\r\n$4\r\nauth\r\n$20000\r\n",
            "unauthenticated bulk length",
        ),
    ] {
        let mut client = served.client();
        client.send(bytes);
        let reply = String::from_utf8(client.reply()).unwrap();
        assert_eq!(reply, format!("-ERR Protocol error: {error}\r\n"));
        assert_eq!(client.try_reply(), None);
    }
}

#[test]
fn no_address_beyond_this_machine_without_a_token() {
    let mut options = Options::new("0.0.0.0:0".parse().unwrap());
    let model = || Box::new(dyno_txn_api::model::Model::new());
    assert!(dyno_txn_resp::RespServer::start(model(), options.clone()).is_err());
    with_token(&mut options);
    assert!(dyno_txn_resp::RespServer::start(model(), options).is_ok());
}

#[test]
fn tls_is_spoken_where_it_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let Some(made) = Certificates::make(folder.path(), "resp") else {
        return;
    };
    let served = serve_with(1, |options| {
        with_token(options);
        options.tls = Some(tls::server(&made.server(), &made.server_key()).unwrap());
    });
    let address = format!("localhost:{}", served.server.address().port());
    let address: Address = address.parse().unwrap();
    let trusted = tls::client(&made.root()).unwrap();
    let wait = Duration::from_secs(10);
    let mut stream = Stream::connect_tls(&address, wait, trusted).unwrap();
    let value = "x".repeat(900_000);
    stream.write_all(&command(&["auth", TOKEN])).unwrap();
    stream.write_all(&command(&["set", "k", &value])).unwrap();
    stream.write_all(&command(&["get", "k"])).unwrap();
    stream.flush().unwrap();
    let expected = format!("+OK\r\n+OK\r\n$900000\r\n{value}\r\n");
    let mut reply = vec![0; expected.len()];
    stream.read_exact(&mut reply).unwrap();
    assert!(reply == expected.as_bytes());
    // A client in the clear gets nothing that it could use.
    let mut plain = TcpStream::connect(served.server.address()).unwrap();
    plain.set_read_timeout(Some(wait)).unwrap();
    plain.write_all(&command(&["ping"])).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"+PONG"));
}

#[test]
fn lengths_that_cannot_be_right_end_the_connection() {
    let served = serve(1);
    for bytes in [
        &b"*2000000000\r\n"[..],
        b"*2\r\n$3\r\nget\r\n$1048577\r\n",
        b"*1\r\n$99999999999999999999\r\n",
    ] {
        let mut client = served.client();
        client.send(bytes);
        let reply = String::from_utf8(client.reply()).unwrap();
        assert!(reply.starts_with("-ERR Protocol error: invalid"), "{reply}");
        assert_eq!(client.try_reply(), None);
    }
    // Four arguments that are each short enough, and together too long.
    let mut client = served.client();
    let long = vec![b'x'; 1 << 20];
    let bytes = command(&[&b"del"[..], &long, &long, &long, &long]);
    // The server stops reading in the middle, so not all of it may go out.
    let mut stream = TcpStream::connect(served.server.address()).unwrap();
    let _ = stream.write_all(&bytes);
    let mut reply = [0; 20];
    let _ = stream.read_exact(&mut reply);
    assert_eq!(client.ask("ping"), "+PONG\r\n");
}

#[test]
fn values_and_keys_that_do_not_fit_are_refused_by_themselves() {
    let served = serve(2);
    let mut client = served.client();
    let (long, key) = ("x".repeat(1 << 20), "k".repeat(1 << 10));
    client.send(&command(&["set", "a", "1"]));
    client.send(&command(&["set", "b", &long]));
    client.send(&command(&["set", &key, "1"]));
    client.send(&command(&["append", "a", &long[..(1 << 20) - 18]]));
    client.send(&command(&["hset", "h", "f", &long[..(1 << 20) - 20]]));
    client.send(&command(&["get", "a"]));
    let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    for expected in [
        "+OK\r\n",
        too_long,
        "-ERR a key is longer than 1016 bytes\r\n",
        too_long,
        too_long,
        "$1\r\n1\r\n",
    ] {
        assert_eq!(String::from_utf8(client.reply()).unwrap(), expected);
    }
}

#[test]
fn a_client_that_does_not_read_does_not_stop_others() {
    let served = serve(1);
    let mut deaf = TcpStream::connect(served.server.address()).unwrap();
    deaf.set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let mut client = served.client();
    let value = "x".repeat(500_000);
    client.send(&command(&["set", "k", &value]));
    client.reply();
    let gets: Vec<u8> = (0..1000).flat_map(|_| command(&["get", "k"])).collect();
    // Half a gigabyte of replies, if the server made them all.
    for _ in 0..200 {
        if deaf.write_all(&gets).is_err() {
            break;
        }
    }
    assert_eq!(client.ask("ping"), "+PONG\r\n");
    assert_eq!(client.ask("strlen k"), ":500000\r\n");
}

#[test]
fn long_replies_arrive_whole() {
    let served = serve(2);
    let mut client = served.client();
    let value = "y".repeat(300_000);
    for n in 0..20 {
        client.send(&command(&["set", &format!("k{n}"), &value]));
        client.reply();
    }
    // Six megabytes of replies to one pipeline: they come in several batches.
    let gets: Vec<u8> = (0..20)
        .flat_map(|n| command(&["get", &format!("k{n}")]))
        .collect();
    client.send(&gets);
    for _ in 0..20 {
        assert_eq!(client.reply().len(), 300_000 + 11);
    }
    // In one reply they are too much.
    let keys: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
    assert!(
        client
            .ask(&format!("mget {}", keys.join(" ")))
            .starts_with("-ERR done, but the reply")
    );
}

#[test]
fn one_long_value_that_is_asked_for_many_times_is_refused() {
    let served = serve(2);
    let mut client = served.client();
    let value = "z".repeat(1_000_000);
    client.send(&command(&["set", "k", &value]));
    assert_eq!(client.reply(), b"+OK\r\n");
    client.send(&command(&["hset", "h", "f", &value]));
    assert_eq!(client.reply(), b":1\r\n");
    // Each would be three gigabytes if it were made first and then refused.
    let refused = "-ERR done, but the reply is longer than 3145728 bytes, ask for less at once\r\n";
    let (keys, fields) = (" k".repeat(3_000), " f".repeat(3_000));
    assert_eq!(client.ask(&format!("mget{keys}")), refused);
    assert_eq!(client.ask(&format!("hmget h{fields}")), refused);
    let gets = vec!["get k".to_owned(); 3_000];
    assert_eq!(transaction(&mut client, &gets), refused);
    assert_eq!(client.ask("ping"), "+PONG\r\n");
}

/// The reply to an `EXEC` of these commands.
fn transaction(client: &mut Client, lines: &[String]) -> String {
    assert_eq!(client.ask("multi"), "+OK\r\n");
    let words = lines
        .iter()
        .map(|line| line.split(' ').collect::<Vec<&str>>());
    let bytes: Vec<u8> = words.flat_map(|words| command(&words)).collect();
    client.send(&bytes);
    for _ in lines {
        assert_eq!(client.reply(), b"+QUEUED\r\n");
    }
    client.ask("exec")
}

#[test]
fn short_commands_that_make_much_are_refused() {
    let served = serve(1);
    let mut client = served.client();
    let set = |n: usize| format!("setrange k{n} 1048500 x");
    // More than 256 MiB of values.
    let mut lines = vec!["hello 3".to_owned()];
    lines.extend((0..300).map(set));
    let reply = transaction(&mut client, &lines);
    let refused = "-ERR one transaction sets values of more than 268435456 bytes";
    assert!(reply.starts_with(refused), "{reply}");
    assert_eq!(client.ask("exists k0 k299"), ":0\r\n");
    // The HELLO was carried out, as every command without keys.
    assert_eq!(client.ask("get absent"), "_\r\n");
    // Values that another one replaces, or that are removed, do not count.
    let lines: Vec<String> = (0..300).map(|_| set(0)).collect();
    assert!(transaction(&mut client, &lines).starts_with("*300\r\n"));
    let removed = (0..300).flat_map(|n| [set(n), format!("del k{n}")]);
    let lines: Vec<String> = removed.collect();
    assert!(transaction(&mut client, &lines).starts_with("*600\r\n"));
    let flushed = (0..300).flat_map(|n| [set(n), "flushall".to_owned()]);
    let lines: Vec<String> = flushed.collect();
    assert!(transaction(&mut client, &lines).starts_with("*600\r\n"));
    // Some megabytes of replies that need no engine.
    let lines = vec!["command".to_owned(); 2_000];
    assert_eq!(
        transaction(&mut client, &lines),
        "-EXECABORT Transaction discarded because of: replies of more than 3145728 bytes\r\n"
    );
    assert_eq!(client.ask("ping"), "+PONG\r\n");
}

#[test]
fn patterns_that_are_too_long_are_refused() {
    let served = serve(1);
    let mut client = served.client();
    assert_eq!(client.ask("set key value"), "+OK\r\n");
    let of = |bytes: usize| format!("[{}]*", "k".repeat(bytes - 3));
    let (longest, longer) = (of(4096), of(4097));
    let refused = "-ERR a pattern is longer than 4096 bytes\r\n";
    for (line, expected) in [
        (format!("keys {longest}"), "*1\r\n$3\r\nkey\r\n"),
        (format!("keys {longer}"), refused),
        (
            format!("scan 0 match {longest}"),
            "*2\r\n$1\r\n0\r\n*1\r\n$3\r\nkey\r\n",
        ),
        (format!("scan 0 match {longer}"), refused),
        (format!("config get {longest}"), "*0\r\n"),
        (format!("config get {longer}"), refused),
    ] {
        assert_eq!(client.ask(&line), expected);
    }
}

#[test]
fn more_connections_than_allowed_are_refused() {
    let served = serve_with(1, |options| options.most_connections = 2);
    let (mut one, mut two) = (served.client(), served.client());
    assert_eq!(
        (one.ask("ping"), two.ask("ping")),
        ("+PONG\r\n".into(), "+PONG\r\n".into())
    );
    let mut three = served.client();
    assert_eq!(three.reply(), b"-ERR max number of clients reached\r\n");
    drop(one);
    // The place is free once the server has seen the end.
    let until = std::time::Instant::now() + Duration::from_secs(10);
    loop {
        let mut client = Client::connect(served.server.address());
        client.send(&command(&["ping"]));
        if client
            .try_reply()
            .is_some_and(|reply| reply == b"+PONG\r\n")
        {
            break;
        }
        assert!(std::time::Instant::now() < until);
    }
}

#[test]
fn a_stop_answers_what_was_sent() {
    let mut served = serve(1);
    let mut client = served.client();
    assert_eq!(client.ask("set k v"), "+OK\r\n");
    served.server.stop();
    assert_eq!(client.try_reply(), None);
    assert!(!served.server.has_failed());
}
