//! What stores answer in trouble, played by a server that reads a request and gives the next answer
//! of a list: errors that a healthy store cannot be made to give.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use dyno_io::{Durability, Existing, IoError, Sink};
use dyno_objects::{Access, ObjectError, ObjectSink, Retry, Sending, Store};

const SECRET: &str = "a-secret-that-must-not-be-shown";
const TOKEN: &str = "a-token-that-must-not-be-shown";

/// Plays `answers` (status line rest, headers, body), one for each connection. An empty status
/// closes the connection instead, so that the answer is lost. Returns the requests' methods.
fn play(
    answers: Vec<(&'static str, &'static str, String)>,
) -> (Arc<Store>, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let player = std::thread::spawn(move || {
        let mut lines = Vec::new();
        for (status, headers, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut body_bytes) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            let mut conditional = "";
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim().to_ascii_lowercase();
                if let Some(len) = line.strip_prefix("content-length: ") {
                    body_bytes = len.parse().unwrap();
                }
                if line == "if-none-match: *" {
                    conditional = " if new";
                }
                if line.is_empty() {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; body_bytes]).unwrap();
            let verb = first.split(' ').next().unwrap();
            lines.push(format!("{verb}{conditional}"));
            if status.is_empty() {
                continue;
            }
            let len = match verb {
                "HEAD" => String::new(),
                _ => format!("content-length: {}\r\n", body.len()),
            };
            let head = format!("HTTP/1.1 {status}\r\n{headers}{len}connection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
        }
        lines
    });
    let access = Access::from_settings(|name| match name {
        "AWS_ENDPOINT_URL" => Some(address.clone()),
        "AWS_ACCESS_KEY_ID" => Some("a-key".to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(SECRET.to_owned()),
        "AWS_SESSION_TOKEN" => Some(TOKEN.to_owned()),
        _ => None,
    });
    let retry = Retry {
        attempts: 3,
        first_wait: Duration::from_millis(1),
        ..Retry::default()
    };
    (Store::new(access.unwrap(), "lake", retry).unwrap(), player)
}

fn error(code: &str, message: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    )
}

fn write_abc(store: &Arc<Store>, existing: Existing) -> Result<u64, IoError> {
    let sending = Sending {
        existing,
        ..Sending::default()
    };
    let mut sink = ObjectSink::create(store, "a", &sending).unwrap();
    sink.write(b"abc")?;
    sink.finish(Durability::Stable)
}

/// MD5 of "abc" (RFC 1321).
const ABC: &str = "etag: \"900150983cd24fb0d6963f7d28e17f72\"\r\n";
const ABC_HEAD: &str = "etag: \"900150983cd24fb0d6963f7d28e17f72\"\r\ncontent-length: 3\r\n";

fn none() -> String {
    String::new()
}

#[test]
fn wrong_credentials_are_named_without_being_shown() {
    let answer = error(
        "SignatureDoesNotMatch",
        &format!("you sent {SECRET} and {TOKEN}"),
    );
    let (store, player) = play(vec![
        ("403 Forbidden", "", answer),
        ("403 Forbidden", "", none()),
    ]);
    let failed = write_abc(&store, Existing::Replace).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "cannot write s3://lake/a: access denied (SignatureDoesNotMatch: you sent *** and ***)"
    );
    assert!(!format!("{failed:?} {store:?}").contains("must-not-be-shown"));
    assert_eq!(player.join().unwrap(), ["PUT", "HEAD"]);
}

#[test]
fn passing_trouble_is_waited_out() {
    let (store, player) = play(vec![
        ("503 Slow Down", "", error("SlowDown", "less")),
        ("500 Oh", "", none()),
        ("200 OK", ABC, none()),
        ("200 OK", ABC_HEAD, none()),
    ]);
    assert_eq!(write_abc(&store, Existing::Replace).unwrap(), 3);
    assert_eq!(player.join().unwrap(), ["PUT", "PUT", "PUT", "HEAD"]);
}

/// A store answers so while it decides between two conditional writes.
#[test]
fn a_conflict_with_another_writer_is_waited_out() {
    let conflict = error("ConditionalRequestConflict", "another request is under way");
    let (store, player) = play(vec![
        ("404 None", "", none()),
        ("409 Conflict", "", conflict),
        ("200 OK", ABC, none()),
        ("200 OK", ABC_HEAD, none()),
    ]);
    assert_eq!(write_abc(&store, Existing::Refuse).unwrap(), 3);
    let asked = ["HEAD", "PUT if new", "PUT if new", "HEAD"];
    assert_eq!(player.join().unwrap(), asked);
}

#[test]
fn lasting_trouble_ends_after_the_attempts() {
    let slow = || ("503 Slow Down", "", error("SlowDown", "less"));
    let (store, player) = play(vec![slow(), slow(), slow(), ("404 None", "", none())]);
    let failed = write_abc(&store, Existing::Replace).unwrap_err();
    let text = "cannot write s3://lake/a: the store answered 503 (SlowDown: less)";
    assert_eq!(failed.to_string(), text);
    assert_eq!(player.join().unwrap().len(), 4);
}

/// The first attempt was carried out, its answer got lost, and the second meets its own object.
#[test]
fn a_lost_answer_is_found_out() {
    let (store, player) = play(vec![
        ("404 None", "", none()),
        ("500 Oh", "", none()),
        (
            "412 Precondition Failed",
            "",
            error("PreconditionFailed", "there is one"),
        ),
        ("200 OK", ABC_HEAD, none()),
    ]);
    assert_eq!(write_abc(&store, Existing::Refuse).unwrap(), 3);
    let asked = ["HEAD", "PUT if new", "PUT if new", "HEAD"];
    assert_eq!(player.join().unwrap(), asked);
}

/// The object is there, and no attempt to write it was ever answered.
#[test]
fn an_object_whose_every_answer_is_lost_is_found_out() {
    let lost = || ("", "", none());
    let (store, player) = play(vec![
        ("404 None", "", none()),
        lost(),
        lost(),
        lost(),
        ("200 OK", ABC_HEAD, none()),
    ]);
    assert_eq!(write_abc(&store, Existing::Refuse).unwrap(), 3);
    let put = "PUT if new";
    assert_eq!(player.join().unwrap(), ["HEAD", put, put, put, "HEAD"]);
}

/// Without conditions only the look before the write protects an object that is there.
#[test]
fn a_store_without_conditions_that_does_not_say_what_it_has_is_not_written_to() {
    let denied = || ("403 Forbidden", "", none());
    let (store, player) = play(vec![
        ("404 None", "", none()),
        (
            "501 Not Implemented",
            "",
            error("NotImplemented", "a header"),
        ),
        denied(),
        denied(),
    ]);
    let failed = write_abc(&store, Existing::Refuse).unwrap_err().to_string();
    assert!(
        failed.starts_with("cannot look at s3://lake/a: access denied"),
        "{failed}"
    );
    let asked = ["HEAD", "PUT if new", "HEAD", "HEAD"];
    assert_eq!(player.join().unwrap(), asked);
}

#[test]
fn credentials_that_may_write_but_not_look_are_enough() {
    let (store, player) = play(vec![
        ("403 Forbidden", "", none()),
        ("200 OK", ABC, none()),
        ("403 Forbidden", "", none()),
    ]);
    assert_eq!(write_abc(&store, Existing::Refuse).unwrap(), 3);
    let asked = ["HEAD", "PUT if new", "HEAD"];
    assert_eq!(player.join().unwrap(), asked);
}

#[test]
fn a_store_without_conditions_is_asked_beforehand() {
    let (store, player) = play(vec![
        ("404 None", "", none()),
        (
            "501 Not Implemented",
            "",
            error("NotImplemented", "a header"),
        ),
        ("404 None", "", none()),
        ("200 OK", ABC, none()),
        ("200 OK", ABC_HEAD, none()),
    ]);
    assert_eq!(write_abc(&store, Existing::Refuse).unwrap(), 3);
    let asked = ["HEAD", "PUT if new", "HEAD", "PUT", "HEAD"];
    assert_eq!(player.join().unwrap(), asked);
}

#[test]
fn what_arrived_otherwise_is_an_error() {
    let other = "etag: \"00000000000000000000000000000000\"\r\n";
    let (store, player) = play(vec![("200 OK", other, none())]);
    let failed = write_abc(&store, Existing::Replace).unwrap_err();
    let IoError::Remote(inner) = &failed else {
        panic!("{failed}");
    };
    let inner: &ObjectError = inner.downcast_ref().unwrap();
    assert!(
        matches!(inner, ObjectError::Mismatch { what: "ETag", .. }),
        "{failed}"
    );
    player.join().unwrap();
}

/// A store may begin to answer 200 before it fails to join the parts.
#[test]
fn an_error_with_status_200_is_an_error_and_the_upload_is_aborted() {
    let begun = "<R><UploadId>u1</UploadId></R>".to_owned();
    let part = |etag| ("200 OK", etag, none());
    let (store, player) = play(vec![
        ("200 OK", "", begun),
        part("etag: \"x\"\r\n"),
        part("etag: \"y\"\r\n"),
        ("200 OK", "", error("InvalidPart", "one is missing")),
        ("404 None", "", none()),
        ("204 No Content", "", none()),
    ]);
    let sending = Sending {
        in_flight: 1,
        existing: Existing::Replace,
        ..Sending::default()
    };
    let mut sink = ObjectSink::create(&store, "a", &sending).unwrap();
    sink.write(&vec![0; 9 << 20]).unwrap();
    let failed = sink.finish(Durability::Stable).unwrap_err().to_string();
    let text = "cannot complete s3://lake/a: the store answered 200 (InvalidPart: one is missing)";
    assert_eq!(failed, text);
    let asked = ["POST", "PUT", "PUT", "POST", "HEAD", "DELETE"];
    assert_eq!(player.join().unwrap(), asked);
}

#[test]
fn nobody_at_the_endpoint_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let access = Access::from_settings(|name| match name {
        "AWS_ENDPOINT_URL" => Some(address.clone()),
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some(SECRET.to_owned()),
        _ => None,
    });
    let retry = Retry {
        attempts: 2,
        first_wait: Duration::from_millis(1),
        ..Retry::default()
    };
    let store = Store::new(access.unwrap(), "lake", retry).unwrap();
    let failed = ObjectSink::create(&store, "a", &Sending::default())
        .unwrap_err()
        .to_string();
    assert!(
        failed.starts_with("cannot look at s3://lake/a: ") && failed.ends_with("(2 attempts)"),
        "{failed}"
    );
    assert!(failed.contains("refused"), "{failed}");
}
