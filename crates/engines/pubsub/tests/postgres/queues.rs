use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::{Claimed, Code, Queue, QueueOptions};

use super::server::Server;

const NOW: Duration = Duration::ZERO;

fn queue(server: &Server, options: &QueueOptions) -> (String, Queue) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("queue-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Queue::create(&mut server.connect(), &name, options).unwrap();
    let opened = Queue::open(&server.dsn, &name).unwrap();
    (name, opened)
}

fn payloads(claimed: &[Claimed]) -> Vec<&[u8]> {
    claimed.iter().map(|message| &message.payload[..]).collect()
}

#[test]
fn a_message_is_done_by_one_worker() {
    let server = Server::shared();
    let (name, mut queue) = queue(&server, &QueueOptions::default());
    for start in (0..3000_u32).step_by(300) {
        let numbers: Vec<[u8; 4]> = (start..start + 300).map(u32::to_be_bytes).collect();
        queue
            .send(&numbers.iter().map(|n| &n[..]).collect::<Vec<_>>(), NOW)
            .unwrap();
    }
    let done = Mutex::new(HashMap::<Vec<u8>, u32>::new());
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut worker = Queue::open(&server.dsn, &name).unwrap();
                loop {
                    let claimed = worker.claim(70, None).unwrap();
                    if claimed.is_empty() {
                        return;
                    }
                    assert!(worker.acknowledge(&claimed).unwrap().is_empty());
                    let mut done = done.lock().unwrap();
                    for message in claimed {
                        *done.entry(message.payload).or_default() += 1;
                    }
                }
            });
        }
    });
    let done = done.lock().unwrap();
    assert_eq!((done.len(), done.values().max()), (3000, Some(&1)));
    assert_eq!(queue.stats().unwrap(), dyno_pubsub::QueueStats::default());
}

#[test]
fn an_unacknowledged_message_comes_again_and_then_is_a_dead_letter() {
    let server = Server::shared();
    let options = QueueOptions {
        visibility: Duration::from_millis(300),
        max_attempts: 2,
        keep_done: true,
    };
    let (_, mut queue) = queue(&server, &options);
    queue.send(&[b"one", b"two"], NOW).unwrap();
    let first = queue.claim(10, None).unwrap();
    assert_eq!(payloads(&first), [&b"one"[..], b"two"]);
    assert!(queue.claim(10, None).unwrap().is_empty());
    assert!(queue.acknowledge(&first[..1]).unwrap().is_empty());
    let until = Instant::now() + Duration::from_secs(5);
    let second = loop {
        let second = queue.claim(10, None).unwrap();
        if !second.is_empty() || Instant::now() > until {
            break second;
        }
    };
    assert_eq!(
        (payloads(&second), second[0].attempts),
        (vec![&b"two"[..]], 2)
    );
    // The first claim has run out.
    assert_eq!(
        queue.acknowledge(&first[1..]).unwrap(),
        [first[1].message_id]
    );
    assert!(
        queue
            .give_back(&second, NOW, "no chairs left")
            .unwrap()
            .is_empty()
    );
    assert!(queue.claim(10, None).unwrap().is_empty());
    let stats = queue.stats().unwrap();
    assert_eq!(
        (stats.ready, stats.claimed, stats.dead, stats.done),
        (0, 0, 1, 1)
    );
    let mut connection = server.connect();
    let reason = "SELECT reason, attempts FROM pubsub.queue_dead((SELECT max(name) FROM pubsub.queues WHERE max_attempts = 2))";
    let row = connection.client().query_one(reason, &[]).unwrap();
    assert_eq!(
        (row.get::<_, &str>(0), row.get::<_, i32>(1)),
        ("no chairs left", 2)
    );
    assert_eq!(queue.redrive(10).unwrap(), 1);
    let third = queue.claim(10, None).unwrap();
    assert_eq!(
        (payloads(&third), third[0].attempts),
        (vec![&b"two"[..]], 1)
    );
}

#[test]
fn a_worker_that_lingers_claims_at_once_what_has_gathered() {
    const LINGER: Duration = Duration::from_millis(300);
    let server = Server::shared();
    let (name, mut queue) = queue(&server, &QueueOptions::default());
    let mut worker = Queue::open(&server.dsn, &name).unwrap();
    worker.set_linger(LINGER);
    queue.send(&[b"one"], NOW).unwrap();
    let began = Instant::now();
    let first = worker.claim(2, None).unwrap();
    assert_eq!(payloads(&first), [b"one"]);
    queue.send(&[b"two", b"three", b"four"], NOW).unwrap();
    let second = worker.acknowledge_and_claim(&first, 2, None).unwrap();
    assert!(began.elapsed() >= LINGER);
    assert_eq!(payloads(&second.claimed), [&b"two"[..], b"three"]);
    assert!(second.late.is_empty());
    // That claim was full, so the next one begins at once: it is there long before a pause as long
    // as this one ends.
    worker.set_linger(Duration::from_hours(1));
    assert_eq!(payloads(&worker.claim(2, None).unwrap()), [b"four"]);
}

#[test]
fn delays_and_extensions_hide_messages() {
    let server = Server::shared();
    let (_, mut queue) = queue(&server, &QueueOptions::default());
    queue.send(&[b"later"], Duration::from_millis(400)).unwrap();
    assert!(queue.claim(1, None).unwrap().is_empty());
    assert_eq!(queue.stats().unwrap().delayed, 1);
    let until = Instant::now() + Duration::from_secs(5);
    let claimed = loop {
        let claimed = queue.claim(1, Some(Duration::from_millis(200))).unwrap();
        if !claimed.is_empty() || Instant::now() > until {
            break claimed;
        }
    };
    assert!(
        queue
            .extend(&claimed, Duration::from_secs(60))
            .unwrap()
            .is_empty()
    );
    thread::sleep(Duration::from_millis(250));
    assert!(queue.claim(1, None).unwrap().is_empty());
    assert!(queue.acknowledge(&claimed).unwrap().is_empty());
    assert_eq!(
        queue.acknowledge(&claimed).unwrap(),
        [claimed[0].message_id]
    );
}

#[test]
fn a_message_that_is_given_back_for_the_last_time_is_dead_at_once() {
    let server = Server::shared();
    let options = QueueOptions {
        max_attempts: 1,
        ..QueueOptions::default()
    };
    let (name, mut queue) = queue(&server, &options);
    queue.send(&[b"x"], NOW).unwrap();
    let mut connection = server.connect();
    let nack = format!(
        "SELECT pubsub.queue_nack('{name}', ARRAY[message_id], ARRAY[claim], reason => 'broken') \
           FROM pubsub.queue_claim('{name}')"
    );
    connection.client().execute(&nack, &[]).unwrap();
    let stats = queue.stats().unwrap();
    assert_eq!((stats.ready, stats.dead), (0, 1), "{stats:?}");
    let dead = format!("SELECT reason FROM pubsub.queue_dead('{name}')");
    let row = connection.client().query_one(&dead, &[]).unwrap();
    assert_eq!(row.get::<_, String>(0), "broken");
    // A worker that does not come back: nobody has claimed anything since.
    queue.send(&[b"y"], NOW).unwrap();
    queue.claim(1, Some(Duration::from_millis(1))).unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while queue.stats().unwrap().dead < 2 {
        assert!(Instant::now() < until, "{:?}", queue.stats());
    }
    assert_eq!(queue.stats().unwrap().ready, 0);
}

/// What a worker that did not come back has claimed too often is a dead letter before a claim moves
/// it: a purge leaves it, and it can be read and deleted.
#[test]
fn what_was_claimed_too_often_is_a_dead_letter_for_all_commands() {
    let server = Server::shared();
    let options = QueueOptions {
        max_attempts: 1,
        ..QueueOptions::default()
    };
    let (_, mut queue) = queue(&server, &options);
    let die = |queue: &mut Queue| {
        queue.send(&[b"x"], NOW).unwrap();
        queue.claim(1, Some(Duration::from_millis(1))).unwrap();
        thread::sleep(Duration::from_millis(20));
    };
    die(&mut queue);
    assert_eq!(queue.purge().unwrap(), 0);
    assert_eq!(queue.stats().unwrap().dead, 1);
    assert_eq!(queue.dead_letters(10).unwrap().len(), 1);
    die(&mut queue);
    assert_eq!(queue.redrive(10).unwrap(), 2);
    assert_eq!(queue.purge().unwrap(), 2);
    die(&mut queue);
    assert_eq!(queue.forget_dead().unwrap(), 1);
    assert_eq!(queue.stats().unwrap().dead, 0);
}

/// Such a session cannot move them to the other dead letters first, as a claim does.
#[test]
fn a_session_that_only_reads_sees_dead_letters_that_no_claim_has_moved() {
    let server = Server::shared();
    let options = QueueOptions {
        max_attempts: 1,
        ..QueueOptions::default()
    };
    let (name, mut queue) = queue(&server, &options);
    queue.send(&[b"lost", b"waits"], NOW).unwrap();
    let lost = queue.claim(1, Some(Duration::from_millis(1))).unwrap();
    assert_eq!(payloads(&lost), [b"lost"]);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(queue.stats().unwrap().dead, 1);
    let mut reader = server.connect();
    let only_reads = "SET default_transaction_read_only = on";
    reader.client().batch_execute(only_reads).unwrap();
    let mut dead = || {
        let query = "SELECT message_id, payload, attempts, reason, died_at <= statement_timestamp() \
                       FROM pubsub.queue_dead($1)";
        let row = reader.client().query_one(query, &[&name]).unwrap();
        assert!(row.get::<_, bool>(4));
        let what: (i64, Vec<u8>) = (row.get(0), row.get(1));
        let why: (i32, String) = (row.get(2), row.get(3));
        (what, why)
    };
    let expected = (
        (lost[0].message_id, b"lost".to_vec()),
        (1, "no worker acknowledged it".to_owned()),
    );
    assert_eq!(dead(), expected);
    // A claim moves it, and it is the same dead letter.
    assert_eq!(payloads(&queue.claim(10, None).unwrap()), [b"waits"]);
    assert_eq!(dead(), expected);
}

/// Sessions once had numbers in stock, so that the least number was not that of the oldest message.
#[test]
fn the_oldest_message_is_found_whichever_session_sent_it() {
    let server = Server::shared();
    let (name, mut queue) = queue(&server, &QueueOptions::default());
    let mut other = Queue::open(&server.dsn, &name).unwrap();
    queue.send(&[b"a"], NOW).unwrap();
    other.send(&[b"b"], NOW).unwrap();
    let first = queue.claim(1, None).unwrap();
    assert_eq!(payloads(&first), [b"a"]);
    queue.acknowledge(&first).unwrap();
    thread::sleep(Duration::from_millis(100));
    queue.send(&[b"c"], NOW).unwrap();
    let oldest = queue.stats().unwrap().oldest_ms;
    assert!(oldest >= Some(100), "{oldest:?}");
}

/// The server answers a commit with success although its wait for the standbys was cancelled.
#[test]
fn a_message_that_no_standby_has_is_not_acknowledged() {
    let server = Server::alone();
    let (_, mut queue) = queue(&server, &QueueOptions::default());
    let mut connection = server.connect();
    let client = connection.client();
    let wait = "ALTER SYSTEM SET synchronous_standby_names = 'none'";
    client.execute(wait, &[]).unwrap();
    client.execute("SELECT pg_reload_conf()", &[]).unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    let shown = "SELECT current_setting('synchronous_standby_names')";
    while client.query_one(shown, &[]).unwrap().get::<_, &str>(0) != "none" {
        assert!(Instant::now() < until, "the setting is not known");
    }
    let sent = thread::spawn(move || queue.send(&[b"x"], NOW));
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while client.query(cancel, &[]).unwrap().is_empty() {
        assert!(Instant::now() < until, "the commit did not wait");
    }
    let error = sent.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), Code::OutcomeUnknown, "{error}");
}

#[test]
fn what_is_done_is_kept_until_it_is_forgotten() {
    let server = Server::shared();
    let options = QueueOptions {
        keep_done: true,
        ..QueueOptions::default()
    };
    let (name, mut queue) = queue(&server, &options);
    queue.send(&[b"one", b"two", b"three"], NOW).unwrap();
    let claimed = queue.claim(2, None).unwrap();
    assert!(queue.acknowledge(&claimed).unwrap().is_empty());
    let mut connection = server.connect();
    let mut done = |query: &str| -> Vec<(Vec<u8>, i32)> {
        let rows = connection
            .client()
            .query(&query.replace("{name}", &name), &[]);
        let pair = |row: &dyno_postgres::postgres::Row| (row.get(0), row.get(1));
        rows.unwrap().iter().map(pair).collect()
    };
    let all = "SELECT payload, attempts FROM pubsub.queue_done('{name}')";
    assert_eq!(done(all), [(b"one".to_vec(), 1), (b"two".to_vec(), 1)]);
    let forget = "SELECT 'x'::bytea, pubsub.queue_forget_done('{name}', done_before)::int FROM";
    let past = format!("{forget} (SELECT now() - interval '1 hour' AS done_before) AS t");
    assert_eq!(done(&past), [(b"x".to_vec(), 0)]);
    let soon = format!("{forget} (SELECT now() + interval '1 hour' AS done_before) AS t");
    assert_eq!(done(&soon), [(b"x".to_vec(), 2)]);
    assert_eq!(done(all), []);
    // What is not done is still there, and is the oldest.
    let stats = queue.stats().unwrap();
    assert_eq!((stats.ready, stats.done), (1, 0));
    assert!(stats.oldest_ms.is_some());
    assert_eq!(payloads(&queue.claim(2, None).unwrap()), [b"three"]);
}

/// A claim once read every waiting message to find those that were tried too often.
#[test]
fn a_claim_reads_few_rows_however_many_wait() {
    let server = Server::shared();
    let (name, mut queue) = queue(&server, &QueueOptions::default());
    let payloads = vec![&b"waits"[..]; 1000];
    for _ in 0..20 {
        queue.send(&payloads, NOW).unwrap();
    }
    let mut connection = server.connect();
    let client = connection.client();
    let read = "SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = \
                format('queue_%s_state', (pubsub.queue_named($1)).queue_id)";
    let mut transaction = client.transaction().unwrap();
    let claim = "SELECT count(*) FROM pubsub.queue_claim($1, 10)";
    let claimed: i64 = transaction.query_one(claim, &[&name]).unwrap().get(0);
    let read: i64 = transaction.query_one(read, &[&name]).unwrap().get(0);
    assert_eq!(claimed, 10);
    assert!((10..100).contains(&read), "{read} rows were read");
}

#[test]
fn dead_letters_at_the_front_hide_no_message_behind_them() {
    let server = Server::shared();
    let options = QueueOptions {
        max_attempts: 1,
        ..QueueOptions::default()
    };
    let (_, mut queue) = queue(&server, &options);
    queue.send(&[b"a", b"b", b"c"], NOW).unwrap();
    // No worker comes back with these three, so each is tried out once its claim is over.
    assert_eq!(
        queue
            .claim(3, Some(Duration::from_millis(1)))
            .unwrap()
            .len(),
        3
    );
    thread::sleep(Duration::from_millis(20));
    queue.send(&[b"d"], NOW).unwrap();
    assert_eq!(payloads(&queue.claim(1, None).unwrap()), [b"d"]);
    let stats = queue.stats().unwrap();
    assert_eq!((stats.dead, stats.claimed), (3, 1), "{stats:?}");
}

#[test]
fn a_queue_refuses_in_words_what_makes_no_sense() {
    let server = Server::shared();
    let (name, _) = queue(&server, &QueueOptions::default());
    let mut connection = server.connect();
    for (state, statement) in [
        (
            "DP011",
            format!(
                "queue_send_batch('{name}', ARRAY['a']::bytea[], ARRAY['{{}}', '{{}}']::jsonb[])"
            ),
        ),
        (
            "DP011",
            format!("queue_extend('{name}', ARRAY[1], ARRAY[1], NULL)"),
        ),
        (
            "DP011",
            format!("queue_extend('{name}', ARRAY[1], ARRAY[1], -5)"),
        ),
        (
            "DP011",
            format!("queue_extend('{name}', ARRAY[1], NULL, 5)"),
        ),
        (
            "DP011",
            format!("queue_nack('{name}', ARRAY[1], ARRAY[1], -5)"),
        ),
        (
            "DP011",
            format!("queue_ack('{name}', ARRAY[1, 2], ARRAY[1])"),
        ),
        (
            "DP002",
            format!("queue_send('{name}', decode(repeat('00', 8388609), 'hex'))"),
        ),
    ] {
        let error = connection
            .client()
            .execute(&format!("SELECT pubsub.{statement}"), &[]);
        let error = error.unwrap_err();
        assert_eq!(
            error.code().map(|code| code.code()),
            Some(state),
            "{statement}: {error:?}"
        );
    }
}

/// The functions of one queue do not look at what these refuse.
#[test]
fn the_library_refuses_what_the_functions_by_name_refuse() {
    let server = Server::shared();
    let (_, mut queue) = queue(&server, &QueueOptions::default());
    let large = vec![0; (8 << 20) + 1];
    let refused = queue.send(&[b"fits", &large], NOW).unwrap_err();
    assert_eq!(refused.code(), "record-too-large");
    assert_eq!(queue.send(&[&large[1..]], NOW).unwrap().len(), 1);
    for refused in [
        queue.claim(1, Some(NOW)).unwrap_err(),
        queue.acknowledge_and_claim(&[], 1, Some(NOW)).unwrap_err(),
    ] {
        assert_eq!(refused.code(), "bad-argument");
    }
    let claimed = queue.claim(5, None).unwrap();
    assert_eq!((claimed.len(), claimed[0].attempts), (1, 1));
}
