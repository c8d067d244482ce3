//! What a new user does with the log: serve, topic, produce, consume in a group, look; and what
//! happens when everything is killed in the middle.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod administered;
mod benched;
mod examples;
mod kafka;
mod queues;
mod secured;
mod served;
mod unanswered;
mod ungrouped;
mod watched;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;
use served::{Log, has_server, interrupt, ok, pubsub, with_input};

fn numbers(range: std::ops::Range<u32>) -> String {
    range.map(|n| format!("{n}\n")).collect()
}

/// The lines as numbers, sorted.
fn sorted(text: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(
        log.dyno(&["topic", "create", "orders", "--partitions", "2"]),
        "",
    );
    let said = ok(log.dyno(&["produce", "orders"]), &numbers(0..1000));
    assert_eq!(said, "1000 records acknowledged\n");
    let consume = [
        "consume", "orders", "--group", "billing", "--member", "a", "--count", "300",
    ];
    let first = ok(log.dyno(&consume), "");
    assert_eq!(first.lines().count(), 300);

    // A producer that is on its way while broker goes away and comes back loses nothing and repeats
    // nothing.
    let mut producing = log.dyno(&["produce", "orders"]);
    let pipes = producing.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut producer = pipes.spawn().unwrap();
    let mut lines = producer.stdin.take().unwrap();
    lines.write_all(numbers(1000..1500).as_bytes()).unwrap();
    // It is connected when the first of them are there.
    while log.records("orders") == 1000 {
        std::thread::yield_now();
    }
    log.kill();
    lines.write_all(numbers(1500..2000).as_bytes()).unwrap();
    log.start_again();
    drop(lines);
    let output = producer.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "1000 records acknowledged\n"
    );

    let rest = [
        "consume",
        "orders",
        "--group",
        "billing",
        "--member",
        "a",
        "--until-empty",
    ];
    let rest = ok(log.dyno(&rest), "");
    // What was printed was committed, so nothing comes twice.
    assert_eq!(
        sorted(&format!("{first}{rest}")),
        (0..2000).collect::<Vec<_>>()
    );

    let groups: Value =
        serde_json::from_str(&ok(log.dyno(&["group", "orders", "--json"]), "")).unwrap();
    assert_eq!(
        (&groups[0]["group"], &groups[0]["lag"]),
        (&"billing".into(), &0.into())
    );
    let status: Value = serde_json::from_str(&ok(log.dyno(&["status", "--json"]), "")).unwrap();
    assert_eq!(log.records("orders"), 2000);
    assert!(
        status["broker"]["counters"]["fetches"]
            .as_u64()
            .is_some_and(|n| n > 0)
    );
    log.stop();
}

#[test]
fn the_same_commands_work_without_the_broker() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(
        log.direct(&["topic", "create", "a.b", "--retention", "48h"]),
        "",
    );
    let lines = "{\"key\":\"k\",\"value\":\"one\",\"headers\":{\"h\":[\"1\",null]}}\n\
                 {\"value\":{\"base64\":\"/w==\"}}\n";
    let said = ok(log.direct(&["produce", "a.b", "--json"]), lines);
    assert!(said.contains("\"acknowledged\": 2"), "{said}");
    let tail = ["consume", "a.b", "--group", "g", "--until-empty", "--json"];
    // The other way round: sent straight to the server, read through the broker.
    let read = ok(log.dyno(&tail), "");
    let messages: Vec<Value> = read
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let values: Vec<&Value> = messages.iter().map(|message| &message["value"]).collect();
    assert_eq!(
        values,
        [
            &Value::from("one"),
            &serde_json::json!({ "base64": "/w==" })
        ]
    );
    assert_eq!(
        messages[0]["headers"],
        serde_json::json!({ "h": ["1", null] })
    );
    ok(
        log.dyno(&[
            "topic",
            "alter",
            "a.b",
            "--partitions",
            "3",
            "--retention",
            "0s",
        ]),
        "",
    );
    let listed = ok(log.dyno(&["topic", "list", "--json"]), "");
    let topics: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(topics[0]["partitions"].as_array().unwrap().len(), 3);
    assert_eq!(topics[0]["retention_ms"], Value::Null);
    ok(log.dyno(&["topic", "drop", "a.b", "--yes"]), "");
    assert_eq!(ok(log.direct(&["topic", "list", "--json"]), ""), "[]\n");
    log.stop();
}

#[test]
fn failures_say_what_and_whether_to_try_again() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(log.dyno(&["topic", "create", "t"]), "");
    for (args, input, said) in [
        (
            &["produce", "nobody"][..],
            "x\n",
            "[unknown-topic]; a retry is of no use",
        ),
        (&["topic", "create", "t"], "", "[name-taken]"),
        (&["group", "t", "--group", "g"], "", "[unknown-group]"),
        (
            &["produce", "t", "--json"],
            "{\"value\":\"ok\"}\n{\n",
            "line 2: it is not a JSON object",
        ),
        (
            &["produce", "t", "--key-separator", "::"],
            "a:b\n",
            "line 1: there is no \"::\"",
        ),
    ] {
        for mut command in [log.dyno(args), log.direct(args)] {
            let output = with_input(&mut command, input);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
            assert!(error.contains(said), "{args:?}: {error}");
        }
    }
    // What came before the bad line is acknowledged.
    let read = ["consume", "t", "--group", "g", "--until-empty"];
    assert_eq!(ok(log.dyno(&read), ""), "ok\nok\n");
    // A second owner of the same directory is refused.
    let mut second = pubsub(&["serve", "--listen", "127.0.0.1:0", "--data"]);
    second.arg(log.dir.path().join("data"));
    let output = with_input(&mut second, "");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("in use"), "{error}");
    log.stop();
}

#[test]
fn a_consumer_that_waits_leaves_its_group_on_ctrl_c() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    ok(log.dyno(&["topic", "create", "t"]), "");
    let mut reading = log.dyno(&["consume", "t", "--group", "g"]);
    let mut reader = reading.stdout(Stdio::piped()).spawn().unwrap();
    ok(log.dyno(&["produce", "t"]), "first\n");
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    interrupt(&reader);
    assert!(reader.wait().unwrap().success());
    let groups = ok(log.dyno(&["group", "t", "--json"]), "");
    let groups: Value = serde_json::from_str(&groups).unwrap();
    assert_eq!(groups[0]["partitions"][0]["member"], Value::Null);
    assert_eq!(groups[0]["lag"], 0);
    log.stop();
}
