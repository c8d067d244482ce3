use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::{
    Change, Connection, Consumer, ConsumerOptions, Membership, Message, Ownership, Producer,
    ProducerOptions, Start, TopicChanges, TopicOptions, WhenLost,
};

use super::server::Server;

fn options(member: &str, lease_ms: u64) -> ConsumerOptions {
    ConsumerOptions {
        member: Some(member.to_owned()),
        start: Start::Earliest,
        lease: Duration::from_millis(lease_ms),
        ..ConsumerOptions::default()
    }
}

fn send(server: &Server, topic: &str, values: std::ops::Range<u64>) {
    let producer = Producer::open(&server.dsn, topic, ProducerOptions::default()).unwrap();
    for value in values {
        producer
            .send(Some(&value.to_be_bytes()), &value.to_be_bytes())
            .unwrap();
    }
    producer.flush().unwrap();
}

fn number(message: &Message) -> u64 {
    u64::from_be_bytes(message.value[..].try_into().unwrap())
}

/// Polls until that many messages came.
fn poll_all(consumer: &mut Consumer, expected: usize) -> Vec<Message> {
    let until = Instant::now() + Duration::from_secs(20);
    let mut got = Vec::new();
    while got.len() < expected && Instant::now() < until {
        got.extend(consumer.poll(Duration::from_millis(200)).unwrap());
    }
    got
}

#[test]
fn what_is_committed_is_not_read_again() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions {
        partitions: 3,
        ..TopicOptions::default()
    });
    send(&server, &name, 0..1000);
    let mut consumer = Consumer::open(&server.dsn, &name, "g", options("a", 10_000)).unwrap();
    let first = poll_all(&mut consumer, 1000);
    assert_eq!(first.len(), 1000);
    let numbers: HashSet<u64> = first.iter().map(number).collect();
    assert_eq!(numbers, (0..1000).collect());
    consumer.commit().unwrap();
    consumer.close().unwrap();
    send(&server, &name, 1000..1100);
    let mut consumer = Consumer::open(&server.dsn, &name, "g", options("b", 10_000)).unwrap();
    let second = poll_all(&mut consumer, 100);
    assert!(second.iter().all(|message| number(message) >= 1000));
    assert_eq!(second.len(), 100);
    // Not committed: the next one gets it again, and it is counted.
    consumer.close().unwrap();
    let mut consumer = Consumer::open(&server.dsn, &name, "g", options("c", 10_000)).unwrap();
    assert_eq!(poll_all(&mut consumer, 100), second);
    consumer.commit().unwrap();
    consumer.close().unwrap();
    let lag = server.connect().group_lag(&name, "g").unwrap();
    assert_eq!(lag.iter().map(|lag| lag.redelivered).sum::<i64>(), 100);
    assert!(
        lag.iter()
            .all(|lag| lag.lag == 0 && lag.committed == lag.next_offset && lag.member.is_none())
    );
}

#[test]
fn groups_begin_where_they_are_told() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions::default());
    send(&server, &name, 0..50);
    for (group, start, expected) in [
        ("earliest", Start::Earliest, 0..60),
        ("latest", Start::Latest, 50..60),
        ("offset", Start::Offset(20), 20..60),
        ("time", Start::TimeUs(0), 0..60),
    ] {
        let options = ConsumerOptions {
            start,
            ..options("m", 10_000)
        };
        let mut consumer = Consumer::open(&server.dsn, &name, group, options).unwrap();
        if group == "earliest" {
            assert_eq!(poll_all(&mut consumer, 50).len(), 50);
            consumer.commit().unwrap();
        } else if group == "latest" {
            send(&server, &name, 50..60);
        }
        let skipped = if group == "earliest" {
            continue;
        } else {
            expected
        };
        let got = poll_all(&mut consumer, (skipped.end - skipped.start) as usize);
        assert_eq!(
            got.iter().map(number).collect::<Vec<_>>(),
            skipped.collect::<Vec<_>>(),
            "{group}"
        );
    }
}

/// The cursor of an added partition was once made by the next heartbeat, so a group that began at
/// the end skipped what was sent until then, and its lag did not count it.
#[test]
fn a_group_reads_an_added_partition_from_its_first_record() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions::default());
    let options = || ConsumerOptions {
        start: Start::Latest,
        ..options("m", 10_000)
    };
    let mut consumer = Consumer::open(&server.dsn, &name, "g", options()).unwrap();
    assert!(consumer.poll(Duration::ZERO).unwrap().is_empty());
    consumer.close().unwrap();
    let mut connection = server.connect();
    let changes = TopicChanges {
        partitions: Some(2),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    let send = format!("SELECT pubsub.send('{name}', 'x', part => 1) FROM generate_series(1, 3)");
    connection.client().execute(&send, &[]).unwrap();
    let lag = connection.group_lag(&name, "g").unwrap();
    let lag: Vec<_> = lag.iter().map(|of| (of.partition, of.lag)).collect();
    assert_eq!(lag, [(0, 0), (1, 3)]);
    let mut consumer = Consumer::open(&server.dsn, &name, "g", options()).unwrap();
    assert_eq!(poll_all(&mut consumer, 3).len(), 3);
}

/// Every ownership that a member saw, and that member.
type Owners = Arc<Mutex<HashMap<Ownership, String>>>;

fn note(owners: &Owners, member: &str, assigned: &[Ownership]) {
    let mut owners = owners.lock().unwrap();
    for owned in assigned {
        let owner = owners.entry(*owned).or_insert_with(|| member.to_owned());
        assert_eq!(owner, member, "two owners of {owned:?}");
    }
}

#[test]
fn members_come_and_stall_and_go() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions {
        partitions: 7,
        ..TopicOptions::default()
    });
    let owners = Owners::default();
    let seen = Arc::new(Mutex::new(HashMap::<u64, u32>::new()));
    let done = AtomicBool::new(false);
    let consume = |member: &str, stall: Duration, turns: usize| {
        let mut consumer = Consumer::open(&server.dsn, &name, "g", options(member, 600)).unwrap();
        let mut turn = 0;
        while !done.load(Ordering::Relaxed) && turn < turns {
            let messages = consumer.poll(Duration::from_millis(30)).unwrap();
            note(&owners, member, &consumer.assigned());
            for message in &messages {
                *seen.lock().unwrap().entry(number(message)).or_default() += 1;
            }
            turn += 1;
            if turn % 20 == 0 {
                thread::sleep(stall);
            }
            // A stalled member is refused and joins again by itself.
            if let Err(error) = consumer.commit() {
                assert_eq!(error.code(), "wrong-generation", "{error}");
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| consume("steady", Duration::ZERO, usize::MAX));
        scope.spawn(|| consume("stalling", Duration::from_millis(900), usize::MAX));
        scope.spawn(|| {
            for _ in 0..3 {
                thread::sleep(Duration::from_millis(200));
                consume("coming and going", Duration::ZERO, 25);
            }
        });
        for start in (0..8000).step_by(400) {
            send(&server, &name, start..start + 400);
            thread::sleep(Duration::from_millis(120));
        }
        let until = Instant::now() + Duration::from_secs(20);
        while seen.lock().unwrap().len() < 8000 && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(700));
        done.store(true, Ordering::Relaxed);
    });
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 8000);
    let again: i64 = seen.values().map(|times| i64::from(times - 1)).sum();
    let lag = server.connect().group_lag(&name, "g").unwrap();
    let counted: i64 = lag.iter().map(|lag| lag.redelivered).sum();
    assert!(again <= counted, "{again} redelivered, {counted} counted");
    assert!(lag.iter().any(|lag| lag.generation > 2), "{lag:?}");
}

#[test]
fn partitions_are_shared_and_given_up_without_a_pause() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions {
        partitions: 4,
        ..TopicOptions::default()
    });
    let mut one = Consumer::open(&server.dsn, &name, "g", options("one", 1200)).unwrap();
    let changes = Arc::new(Mutex::new(Vec::new()));
    let recorded = changes.clone();
    one.on_change(move |change| recorded.lock().unwrap().push(change));
    assert_eq!(one.assigned().len(), 4);
    send(&server, &name, 0..100);
    assert_eq!(poll_all(&mut one, 100).len(), 100);
    let mut two = Consumer::open(&server.dsn, &name, "g", options("two", 1200)).unwrap();
    assert!(two.assigned().is_empty());
    // Until it has committed, the first keeps what the second wants.
    let until = Instant::now() + Duration::from_secs(10);
    while !changes
        .lock()
        .unwrap()
        .contains(&Change::Wanted { partition: 3 })
        && Instant::now() < until
    {
        one.poll(Duration::from_millis(50)).unwrap();
    }
    assert_eq!(one.assigned().len(), 4);
    one.commit().unwrap();
    one.poll(Duration::from_millis(50)).unwrap();
    assert_eq!(one.assigned().len(), 2);
    let until = Instant::now() + Duration::from_secs(10);
    while two.assigned().len() < 2 && Instant::now() < until {
        assert!(
            two.poll(Duration::from_millis(50)).unwrap().is_empty(),
            "all was committed"
        );
    }
    assert_eq!(two.assigned().len(), 2);
    assert!(
        !changes
            .lock()
            .unwrap()
            .iter()
            .any(|change| matches!(change, Change::Lost { .. }))
    );
    let lag = server.connect().group_lag(&name, "g").unwrap();
    assert_eq!(lag.iter().map(|lag| lag.redelivered).sum::<i64>(), 0);
}

fn membership(topic: &str, member: &str) -> Membership {
    Membership {
        topic: topic.to_owned(),
        group: "g".to_owned(),
        member: member.to_owned(),
        lease_ms: 10_000,
        start: Start::Earliest,
        when_lost: WhenLost::Skip,
    }
}

fn commit_of(
    connection: &mut Connection,
    group: i32,
    member: &str,
    generation: i64,
    upto: i64,
) -> Vec<i32> {
    let cursor = dyno_pubsub::Cursor {
        partition: 0,
        generation,
        committed: Some(upto),
        claimed_to: None,
    };
    connection.group_commit(group, member, &[cursor]).unwrap()
}

#[test]
fn a_former_owner_cannot_commit() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions::default());
    send(&server, &name, 0..10);
    let mut connection = server.connect();
    let group = connection.join_group(&membership(&name, "one")).unwrap();
    let first = connection.group_heartbeat(group, "one", &[]).unwrap()[0];
    let claim = dyno_pubsub::Cursor {
        partition: 0,
        generation: first.generation,
        committed: None,
        claimed_to: Some(5),
    };
    assert!(
        connection
            .group_commit(group, "one", &[claim])
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        commit_of(&mut connection, group, "one", first.generation, 6),
        [0],
        "beyond the claim"
    );
    assert!(commit_of(&mut connection, group, "one", first.generation, 3).is_empty());
    // The same name joins again: its former self is shut out.
    connection.join_group(&membership(&name, "one")).unwrap();
    assert_eq!(
        commit_of(&mut connection, group, "one", first.generation, 4),
        [0]
    );
    let second = connection.group_heartbeat(group, "one", &[]).unwrap()[0];
    assert!(second.generation > first.generation);
    connection.join_group(&membership(&name, "two")).unwrap();
    connection.group_leave(group, "one").unwrap();
    assert_eq!(
        commit_of(&mut connection, group, "one", second.generation, 5),
        [0]
    );
    let error = connection.group_heartbeat(group, "one", &[]).unwrap_err();
    assert_eq!(error.code(), "unknown-member");
    let third = connection.group_heartbeat(group, "two", &[]).unwrap()[0];
    assert_eq!(
        (third.committed, third.generation > second.generation),
        (3, true)
    );
    let lag = connection.group_lag(&name, "g").unwrap();
    assert_eq!(lag[0].redelivered, 2);
}

#[test]
fn what_retention_took_is_skipped_or_refused_and_an_end_that_moved_back_is_told() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions {
        range_records: 100,
        retention_ms: Some(1),
        ..TopicOptions::default()
    });
    let fails = ConsumerOptions {
        when_lost: WhenLost::Fail,
        ..options("m", 10_000)
    };
    let mut skipping = Consumer::open(&server.dsn, &name, "skips", options("m", 10_000)).unwrap();
    let mut failing = Consumer::open(&server.dsn, &name, "fails", fails).unwrap();
    send(&server, &name, 0..1000);
    let mut connection = server.connect();
    assert!(!connection.maintain().unwrap().is_empty());
    let first = connection.partitions(topic_id).unwrap()[0].first_offset;
    send(&server, &name, 1000..1010);
    let got = poll_all(&mut skipping, 1010 - first as usize);
    assert_eq!(
        got.iter().map(number).collect::<Vec<_>>(),
        (first as u64..1010).collect::<Vec<_>>()
    );
    assert_eq!(connection.group_lag(&name, "skips").unwrap()[0].lost, first);
    let refused = failing.poll(Duration::from_secs(5)).unwrap_err();
    assert_eq!(refused.code(), "offset-out-of-range");
    // As after a copy was restored that ends earlier.
    let back = "UPDATE pubsub.assignments SET committed = 5000, claimed_to = 5000 WHERE group_id IN
                (SELECT group_id FROM pubsub.groups WHERE topic_id = $1 AND name = 'skips')";
    assert_eq!(connection.client().execute(back, &[&topic_id]).unwrap(), 1);
    drop(skipping);
    let mut beyond = Consumer::open(&server.dsn, &name, "skips", options("m", 10_000)).unwrap();
    assert_eq!(
        beyond.poll(Duration::from_secs(5)).unwrap_err().code(),
        "offset-out-of-range"
    );
}

#[test]
fn a_consumer_goes_on_after_the_server_was_killed() {
    let server = Server::alone();
    let (_, name) = server.topic(&TopicOptions::default());
    send(&server, &name, 0..500);
    let mut consumer = Consumer::open(&server.dsn, &name, "g", options("m", 20_000)).unwrap();
    let mut seen = HashSet::new();
    let until = Instant::now() + Duration::from_secs(30);
    for turn in 0..4 {
        while seen.len() < 500 * (turn + 1) && Instant::now() < until {
            for message in consumer.poll(Duration::from_secs(1)).unwrap_or_default() {
                seen.insert(number(&message));
            }
            consumer.commit().ok();
        }
        {
            let mut cluster = server.cluster();
            cluster.kill_all().unwrap();
            cluster.restart().unwrap();
        }
        let next = 500 * (turn as u64 + 1);
        send(&server, &name, next..next + 500);
    }
    assert!(seen.len() >= 2000, "{}", seen.len());
    let lag = server.connect().group_lag(&name, "g").unwrap();
    assert_eq!(
        lag[0].generation, 1,
        "the lease outlived the server's absence"
    );
}
