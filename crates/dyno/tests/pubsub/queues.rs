//! Queues as `status` shows them.

use std::time::Duration;

use dyno_pubsub::{Connection, Dsn, Queue, QueueOptions};
use serde_json::Value;

use crate::served::{Log, has_server, ok};

#[test]
fn status_counts_what_is_in_queues() {
    if !has_server() {
        return;
    }
    let mut log = Log::start();
    let dsn = Dsn::parse(&log.dsn).unwrap();
    let mut connection = Connection::open(&dsn).unwrap();
    let options = QueueOptions {
        max_attempts: 1,
        keep_done: true,
        ..QueueOptions::default()
    };
    Queue::create(&mut connection, "mail", &options).unwrap();
    Queue::create(&mut connection, "empty", &options).unwrap();
    let mut queue = Queue::open(&dsn, "mail").unwrap();
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
