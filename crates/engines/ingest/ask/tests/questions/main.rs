//! Questions to endpoints that answer well, badly, late, never, and with SQL that cannot run.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

mod scripted;

use std::time::Duration;

use dyno_ingest_ask::{AskError, Endpoint, Message, Question, Request, Role, Rows, Usage, ask};
use scripted::{Reply, Scripted};

const KEY: &str = "sk-a-secret-of-this-test";

fn endpoint(at: &Scripted) -> Endpoint {
    let wait = Duration::from_secs(5);
    Endpoint::new(&at.address, Some("tiny"), Some(KEY.to_owned()), wait).unwrap()
}

fn question(mends: usize) -> Question<'static> {
    Question {
        words: "How many spots are there?",
        about: "12 rows",
        mends,
        most_tokens: 200,
    }
}

/// An answer in pieces, as servers stream it.
fn events(lines: &[&str]) -> Vec<u8> {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_vec();
    for line in lines {
        bytes.extend_from_slice(format!("{line}\n\n").as_bytes());
    }
    bytes
}

/// An SQL engine that knows one statement.
fn engine(sql: &str) -> Result<Rows, String> {
    match sql {
        "SELECT count(*) AS n FROM spots" => Ok(Rows::from_csv(b"n\n12\n").unwrap()),
        other => Err(format!("cannot run {other}")),
    }
}

#[test]
fn a_question_becomes_a_statement_and_its_rows() {
    let at = Scripted::start(vec![Reply::Writes(
        "Sure:\n```sql\nSELECT count(*) AS n FROM spots;\n```",
    )]);
    let answer = ask(&endpoint(&at), &question(0), engine).unwrap();
    assert_eq!(answer.sql, "SELECT count(*) AS n FROM spots");
    assert_eq!(answer.rows.columns, ["n"]);
    assert_eq!(answer.rows.values, [["12"]]);
    let usage = Usage {
        prompt_tokens: 100,
        completion_tokens: 7,
    };
    assert_eq!(answer.usage, usage);
    let asked = &at.asked()[0];
    assert!(asked.starts_with("POST /v1/chat/completions "), "{asked}");
    let asked = asked.to_lowercase();
    assert!(
        asked.contains(&format!("authorization: bearer {KEY}")),
        "{asked}"
    );
    for part in [
        "how many spots",
        "12 rows",
        "reporter_grid",
        "\"tiny\"",
        "\"temperature\":0",
    ] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
}

#[test]
fn a_statement_that_fails_is_mended_a_few_times_and_no_more() {
    let script = || {
        vec![
            Reply::Writes("```sql\nSELECT cuont(*)\n```"),
            Reply::Writes("```sql\nDELETE FROM spots\n```"),
            Reply::Writes("SELECT count(*) AS n FROM spots"),
        ]
    };
    let at = Scripted::start(script());
    let answer = ask(&endpoint(&at), &question(2), engine).unwrap();
    assert_eq!(answer.failed.len(), 2);
    assert_eq!(answer.failed[1].0, "DELETE FROM spots");
    assert_eq!(answer.usage.prompt_tokens, 300);
    assert!(at.asked()[1].contains("cannot run SELECT cuont(*)"));

    let at = Scripted::start(script());
    let error = ask(&endpoint(&at), &question(1), engine).unwrap_err();
    let AskError::NotRun { sql, tries, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((sql.as_str(), *tries), ("DELETE FROM spots", 2));
    assert_eq!(at.asked().len(), 2);
}

#[test]
fn what_is_no_answer_is_named() {
    let refused = format!(r#"{{"error": {{"message": "the key {KEY} is not known"}}}}"#);
    let no_words = r#"{"choices": [{"message": {"content": null}}]}"#;
    for (reply, said) in [
        (
            Reply::Says(401, refused),
            "status 401: the key [key] is not known",
        ),
        (
            Reply::Says(503, "loading\u{7}".to_owned()),
            "status 503: loading",
        ),
        (
            Reply::Says(200, "<html>".to_owned()),
            "does not speak the OpenAI interface",
        ),
        (
            Reply::Says(200, no_words.to_owned()),
            "an answer without words",
        ),
        (Reply::Raw(b"SSH-2.0-OpenSSH\r\n".to_vec()), "not HTTP"),
        (Reply::Raw(Vec::new()), ""),
        (
            Reply::Writes("I am sorry."),
            "wrote no SQL, but: I am sorry.",
        ),
    ] {
        let at = Scripted::start(vec![reply]);
        let error = ask(&endpoint(&at), &question(0), engine)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
        assert!(!error.contains(KEY), "{error}");
    }
    let long = vec![b'x'; 5 << 20];
    let at = Scripted::start(vec![Reply::Says(200, String::from_utf8(long).unwrap())]);
    let error = ask(&endpoint(&at), &question(0), engine).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}

#[test]
fn nobody_and_somebody_slow_are_told_apart() {
    let wait = Duration::from_millis(300);
    let nobody = Endpoint::new("http://127.0.0.1:9/v1", None, None, wait).unwrap();
    let error = ask(&nobody, &question(0), engine).unwrap_err();
    assert!(
        error.to_string().contains("nothing listens there"),
        "{error}"
    );
    let at = Scripted::start(vec![Reply::Waits(Duration::from_secs(3))]);
    let slow = Endpoint::new(&at.address, None, None, wait).unwrap();
    let error = ask(&slow, &question(0), engine).unwrap_err();
    assert!(error.to_string().contains("no answer in time"), "{error}");
}

#[test]
fn an_address_without_sense_or_with_a_key_in_it_is_refused() {
    for address in [
        "",
        "localhost:8080",
        "ftp://host/v1",
        "http://me:secret@host/v1",
        "http://me:secret@host:99999/v1",
    ] {
        let error = Endpoint::new(address, None, None, Duration::from_secs(1)).unwrap_err();
        assert!(
            matches!(error, AskError::Address { .. }),
            "{address}: {error}"
        );
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

/// The counts are what a server says, and their sum is only shown.
#[test]
fn counts_of_tokens_that_no_server_can_have_do_no_harm() {
    let message = serde_json::json!({"content": "```sql\nSELECT x\n```"});
    let answer = serde_json::json!({
        "choices": [{"message": message}],
        "usage": {"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX},
    });
    let says = || Reply::Says(200, answer.to_string());
    let at = Scripted::start(vec![says(), says()]);
    let error = ask(&endpoint(&at), &question(1), engine).unwrap_err();
    assert!(
        matches!(error, AskError::NotRun { tries: 2, .. }),
        "{error}"
    );
}

#[test]
fn the_first_model_listed_is_the_one() {
    let listed = r#"{"data": [{"id": "one"}, {"id": "two"}]}"#.to_owned();
    let at = Scripted::start(vec![Reply::Says(200, listed), Reply::Writes("SELECT 1")]);
    let mut endpoint = Endpoint::new(&at.address, None, None, Duration::from_secs(5)).unwrap();
    assert_eq!(endpoint.settle_model().unwrap(), "one");
    assert_eq!(endpoint.settle_model().unwrap(), "one");
    assert!(ask(&endpoint, &question(0), engine).is_err());
    assert!(at.asked()[0].starts_with("GET /v1/models "));
    assert!(at.asked()[1].contains("\"model\":\"one\""));
}

#[test]
fn a_stream_has_a_moment_for_each_piece() {
    let piece =
        |words: &str| format!(r#"data: {{"choices": [{{"delta": {{"content": "{words}"}}}}]}}"#);
    let (first, second) = (piece("SEL"), piece("ECT"));
    let usage = r#"data: {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}"#;
    let whole = [": a comment", &first, &second, usage, "data: [DONE]"];
    let messages = [Message::new(Role::User, "say")];
    let request = Request {
        messages: &messages,
        most_tokens: 2,
        ignore_end: true,
    };
    let at = Scripted::start(vec![Reply::Raw(events(&whole))]);
    let streamed = endpoint(&at).stream(&request).unwrap();
    assert_eq!(streamed.text, "SELECT");
    assert_eq!(streamed.pieces.len(), 2);
    assert_eq!(streamed.usage.unwrap().completion_tokens, 2);
    assert!(at.asked()[0].contains("\"stream\":true"));

    let failed = r#"data: {"error": {"message": "out of memory"}}"#;
    for (lines, said) in [
        (vec![first.as_str()], "broke off"),
        (vec![first.as_str(), failed], "out of memory"),
        (vec!["data: {"], "does not speak"),
    ] {
        let at = Scripted::start(vec![Reply::Raw(events(&lines))]);
        let error = endpoint(&at).stream(&request).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }

    // Each event is within the limits, and all of them together are more than an answer has.
    let long = piece(&"x".repeat(900_000));
    let at = Scripted::start(vec![Reply::Raw(events(&[long.as_str(); 6]))]);
    let error = endpoint(&at).stream(&request).unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
}
