//! Queues as `status` shows them, and as a worker uses them on the command line.

use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, Dsn, Queue, QueueOptions};
use serde_json::Value;

use crate::served::{Log, has_server, interrupt, ok, pubsub, with_input};

/// Makes a queue, and opens it.
fn made(log: &Log, name: &str, options: &QueueOptions) -> Queue {
    let dsn = Dsn::parse(&log.dsn).unwrap();
    Queue::create(&mut Connection::open(&dsn).unwrap(), name, options).unwrap();
    Queue::open(&dsn, name).unwrap()
}

#[test]
fn status_counts_what_is_in_queues() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    let options = QueueOptions {
        max_attempts: 1,
        keep_done: true,
        ..QueueOptions::default()
    };
    made(&log, "empty", &options);
    let mut queue = made(&log, "mail", &options);
    queue
        .send(
            &[b"done", b"dead", b"claimed", b"ready", b"more"],
            Duration::ZERO,
        )
        .unwrap();
    queue.send(&[b"later"], Duration::from_secs(3600)).unwrap();
    let claimed = queue.claim(3, None).unwrap();
    assert!(queue.acknowledge(&claimed[..1]).unwrap().is_empty());
    queue
        .give_back(&claimed[1..2], Duration::ZERO, "no such address")
        .unwrap();
    // Who claims finds the one that was given back too often, and gets the next.
    assert_eq!(queue.claim(1, None).unwrap().len(), 1);
    for command in [
        log.dyno(&["status", "--json"]),
        log.direct(&["status", "--json"]),
    ] {
        let status: Value = serde_json::from_str(&ok(command, "")).unwrap();
        let [empty, mail] = &status["queues"].as_array().unwrap()[..] else {
            panic!("{status}");
        };
        assert_eq!(
            (&empty["queue"], &mail["queue"]),
            (&"empty".into(), &"mail".into())
        );
        assert_eq!(empty["oldest_ms"], Value::Null);
        let count = |name: &str| mail[name].as_i64().unwrap();
        let counts = ["ready", "delayed", "claimed", "dead", "done"].map(count);
        assert_eq!(counts, [1, 1, 2, 1, 1]);
        assert!(count("oldest_ms") >= 0);
    }
    let shown = ok(log.dyno(&["status"]), "");
    assert!(
        shown.contains("| queue | ready |") && shown.contains("| mail "),
        "{shown}"
    );
    log.stop();
}

#[test]
fn a_worker_claims_acknowledges_and_gives_back() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    let queue = |args: &[&str], input: &str| {
        let mut command = pubsub(&["queue"]);
        command.args(args).args(["--dsn", &log.dsn]);
        let output = with_input(&mut command, input);
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            said(&output.stdout),
            said(&output.stderr),
        )
    };
    let done = |args: &[&str], input: &str| {
        let (code, out, err) = queue(args, input);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}: {out}");
        out
    };
    let said = done(&["create", "mails", "--max-attempts", "2"], "");
    assert_eq!(said, "queue mails is there\n");
    assert_eq!(
        done(&["send", "mails"], "ann\nbob\neve\n"),
        "3 messages sent\n"
    );

    let claimed = done(&["claim", "mails", "--count", "2"], "");
    let payloads: Vec<String> = claimed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].to_string())
        .collect();
    assert_eq!(payloads, ["\"ann\"", "\"bob\""]);
    let (ann, bob) = claimed.split_once('\n').unwrap();
    let extend = ["extend", "mails", "--visibility", "1m"];
    assert_eq!(done(&extend, &claimed), "2 messages extended\n");
    assert_eq!(done(&["ack", "mails"], ann), "1 message acknowledged\n");
    // Its claim is over, so the message is not this worker's any more.
    assert_eq!(done(&["nack", "mails"], bob), "1 message given back\n");
    let (code, _, err) = queue(&extend, bob);
    assert_eq!(code, Some(1));
    assert!(err.starts_with("too late for 2: "), "{err}");
    let (code, out, err) = queue(&["ack", "mails"], bob);
    assert_eq!((code, out.as_str()), (Some(1), "0 messages acknowledged\n"));
    assert!(err.starts_with("too late for 2: "), "{err}");

    // Given back a second time it has been claimed as often as the queue allows.
    let again = done(&["claim", "mails", "--count", "10"], "");
    let bob = again.lines().find(|line| line.contains("bob")).unwrap();
    let nack = ["nack", "mails", "--reason", "no such address"];
    assert_eq!(done(&nack, bob), "1 message given back\n");
    assert_eq!(done(&["claim", "mails"], ""), "");
    let dead: Value = serde_json::from_str(&done(&["dead", "mails"], "")).unwrap();
    assert_eq!(dead["payload"], "bob");
    assert_eq!(dead["reason"], "no such address");
    let risen = done(&["dead", "mails", "--redrive"], "");
    assert_eq!(risen, "1 dead letter back in the queue\n");
    assert_eq!(done(&["dead", "mails"], ""), "");

    let (code, _, err) = queue(&["ack", "mails"], "bob\n");
    assert_eq!(code, Some(2));
    assert!(err.contains("line 1 is not what"), "{err}");
    assert_eq!(done(&["drop", "mails"], ""), "queue mails is gone\n");
    let (code, _, err) = queue(&["claim", "mails"], "");
    assert_eq!(code, Some(2));
    assert!(err.contains("there is no queue \"mails\""), "{err}");
    log.stop();
}

#[test]
fn a_purge_deletes_what_no_worker_has_claimed() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    let mut queue = made(&log, "jobs", &QueueOptions::default());
    let payloads: [&[u8]; 3] = [b"a", b"b", b"c"];
    queue.send(&payloads, Duration::ZERO).unwrap();
    queue.send(&[b"later"], Duration::from_secs(60)).unwrap();
    let claimed = queue.claim(1, None).unwrap();
    let run = |args: &[&str]| {
        let more = ["queue", args[0], "jobs", "--dsn", &log.dsn];
        ok(pubsub(&[&more[..], &args[1..]].concat()), "")
    };
    assert_eq!(run(&["purge"]), "3 messages deleted\n");
    assert_eq!(run(&["claim"]), "");
    // What was claimed is still its worker's.
    assert!(queue.acknowledge(&claimed).unwrap().is_empty());

    let mut short = made(
        &log,
        "short",
        &QueueOptions {
            max_attempts: 1,
            ..Default::default()
        },
    );
    short.send(&[b"x"], Duration::ZERO).unwrap();
    let claimed = short.claim(1, None).unwrap();
    short.give_back(&claimed, Duration::ZERO, "no").unwrap();
    assert_eq!(short.stats().unwrap().dead, 1);
    let dead = ["queue", "dead", "short", "--delete", "--dsn", &log.dsn];
    assert_eq!(ok(pubsub(&dead), ""), "1 dead letter deleted\n");
    assert_eq!(short.stats().unwrap().dead, 0);
    log.stop();
}

/// `tail -f` into a queue once waited for a thousand lines, and lost those that it had when it was
/// stopped.
#[test]
fn lines_are_sent_as_they_come_and_a_stop_says_how_many() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    let mut queue = made(&log, "slow", &QueueOptions::default());
    let mut sending = pubsub(&["queue", "send", "slow", "--dsn", &log.dsn])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = sending.stdin.take().unwrap();
    lines.write_all(b"first\nsec").unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while queue.stats().unwrap().ready == 0 {
        assert!(Instant::now() < until, "the first line did not come");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(queue.claim(5, None).unwrap()[0].payload, b"first");
    interrupt(&sending);
    let output = sending.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("lines after 1 were not sent"), "{said}");
    drop(lines);
    log.stop();
}
