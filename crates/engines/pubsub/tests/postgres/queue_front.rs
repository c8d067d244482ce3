//! Where claims begin to look, and what workers do in one transaction.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, Queue, QueueOptions};

use super::server::Server;

const NOW: Duration = Duration::ZERO;

fn queue(server: &Server) -> (String, Queue) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("front-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut connection = server.connect();
    Queue::create(&mut connection, &name, &QueueOptions::default()).unwrap();
    let off = "SELECT format('ALTER TABLE pubsub.queue_%s_state SET (autovacuum_enabled = off)', \
               (pubsub.queue_named($1)).queue_id)";
    let off: String = connection.client().query_one(off, &[&name]).unwrap().get(0);
    connection.client().batch_execute(&off).unwrap();
    let opened = Queue::open(&server.dsn, &name).unwrap();
    (name, opened)
}

/// Claims a message in this session, and returns how many pages that touched.
fn pages_of_a_claim(connection: &mut Connection, name: &str) -> u64 {
    let explain =
        format!("EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM pubsub.queue_claim('{name}', 1)");
    let rows = connection.client().query(&explain, &[]).unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert!(lines[0].contains("rows=1 loops=1"), "{lines:?}");
    let said = lines.iter().find(|line| line.contains("Buffers: shared"));
    let counts = said.unwrap().split(' ');
    let touched = counts.filter_map(|count| {
        let (what, pages) = count.split_once('=')?;
        matches!(what, "hit" | "read").then(|| pages.parse::<u64>().unwrap())
    });
    touched.sum()
}

/// The index keeps the places of what is done until it is vacuumed. A claim once passed all of them.
#[test]
fn a_claim_does_not_pass_what_is_done() {
    let server = Server::shared();
    let (name, mut queue) = queue(&server);
    let payloads = vec![&b"passes"[..]; 1000];
    for _ in 0..30 {
        queue.send(&payloads, NOW).unwrap();
        let claimed = queue.claim(1000, None).unwrap();
        assert!(queue.acknowledge(&claimed).unwrap().is_empty());
    }
    // What was done within the last moment is passed.
    thread::sleep(Duration::from_millis(300));
    queue.send(&payloads[..20], NOW).unwrap();
    let mut connection = server.connect();
    let first = pages_of_a_claim(&mut connection, &name);
    let later: Vec<u64> = (0..5)
        .map(|_| pages_of_a_claim(&mut connection, &name))
        .collect();
    // A second may end between two of them, and the next one then begins at the beginning.
    let least = later.iter().min().unwrap();
    assert!(*least < 60, "{later:?} pages after {first}");
}

/// A message becomes visible behind the front when its sender takes long to commit.
#[test]
fn a_message_of_a_slow_transaction_is_claimed_while_others_come() {
    let server = Server::shared();
    let (name, mut queue) = queue(&server);
    let mut sender = server.connect();
    let mut transaction = sender.client().transaction().unwrap();
    let send = "SELECT pubsub.queue_send($1, 'slow')";
    transaction.execute(send, &[&name]).unwrap();
    let mut worker = Queue::open(&server.dsn, &name).unwrap();
    let mut work = |until: Instant| {
        let mut found = false;
        while Instant::now() < until && !found {
            queue.send(&[b"fast"], NOW).unwrap();
            let claimed = worker.claim(1, None).unwrap();
            found = claimed.iter().any(|message| message.payload == b"slow");
            worker.acknowledge(&claimed).unwrap();
        }
        found
    };
    assert!(!work(Instant::now() + Duration::from_millis(600)));
    transaction.commit().unwrap();
    assert!(work(Instant::now() + Duration::from_secs(5)));
}

#[test]
fn a_worker_acknowledges_and_claims_in_one_transaction() {
    let server = Server::shared();
    let (_, mut queue) = queue(&server);
    queue.send(&[b"a", b"b", b"c"], NOW).unwrap();
    let short = Some(Duration::from_millis(1));
    let lost = queue.claim(1, short).unwrap();
    thread::sleep(Duration::from_millis(20));
    // "a" is visible again, but "b" has been visible for longer.
    let next = queue.acknowledge_and_claim(&lost, 1, None).unwrap();
    assert_eq!(next.late, [lost[0].message_id]);
    assert_eq!(next.claimed[0].payload, b"b");
    let next = queue.acknowledge_and_claim(&next.claimed, 5, None).unwrap();
    assert_eq!(next.late, [] as [i64; 0]);
    let payloads: Vec<_> = next.claimed.iter().map(|m| &m.payload[..]).collect();
    assert_eq!(payloads, [b"a", b"c"]);
    let next = queue.acknowledge_and_claim(&next.claimed, 5, None).unwrap();
    assert_eq!((next.late.len(), next.claimed.len()), (0, 0));
    assert_eq!(queue.stats().unwrap(), dyno_pubsub::QueueStats::default());
}
