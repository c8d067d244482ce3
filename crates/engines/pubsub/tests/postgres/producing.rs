use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::record::Codec;
use dyno_pubsub::{Partitioner, Position, Producer, ProducerOptions, TopicOptions};

use super::read_all;
use super::server::Server;

#[test]
fn receipts_lead_to_the_records() {
    let server = Server::shared();
    for compression in [Codec::None, Codec::Lz4] {
        let (topic_id, name) = server.topic(&TopicOptions {
            partitions: 3,
            compression,
            ..TopicOptions::default()
        });
        let producer = Producer::open(&server.dsn, &name, ProducerOptions::default()).unwrap();
        let sent: Vec<_> = (0..5000)
            .map(|i| {
                let value = format!("value {i}");
                let key = format!("key {}", i % 50);
                let key = (i % 2 == 0).then_some(key.as_bytes());
                (
                    producer.send(key, value.as_bytes()).unwrap(),
                    value,
                    key.map(<[u8]>::to_vec),
                )
            })
            .collect();
        producer.flush().unwrap();
        let mut connection = server.connect();
        let mut log: HashMap<Position, _> = HashMap::new();
        for partition in 0..3 {
            let read = read_all(&mut connection, topic_id, partition, 0);
            log.extend(
                read.into_iter()
                    .map(|(offset, record)| (Position { partition, offset }, record)),
            );
        }
        assert_eq!(log.len(), 5000);
        for (receipt, value, key) in sent {
            let place = receipt.wait().unwrap();
            let record = &log[&place];
            assert_eq!(
                (&record.value[..], record.key.as_deref()),
                (value.as_bytes(), key.as_deref())
            );
            if let Some(key) = key {
                assert_eq!(
                    place.partition.unsigned_abs(),
                    Partitioner::Fnv1a.partition_of(&key, 3)
                );
            }
        }
    }
}

#[test]
fn a_record_waits_for_others_as_long_as_it_is_told() {
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions::default());
    let options = ProducerOptions {
        linger: Duration::from_secs(60),
        batch_records: 10,
        ..ProducerOptions::default()
    };
    let producer = Producer::open(&server.dsn, &name, options).unwrap();
    let receipts: Vec<_> = (0..15)
        .map(|_| producer.send(None, b"x").unwrap())
        .collect();
    assert_eq!(receipts[9].wait().unwrap().offset, 9);
    assert!(receipts[10].outcome().is_none());
    producer.flush().unwrap();
    assert_eq!(receipts[14].outcome().unwrap().unwrap().offset, 14);
    let rows = server.connect().fetch(topic_id, 0, 0, 1000).unwrap().rows;
    assert_eq!(
        rows.iter().map(|row| row.count).collect::<Vec<_>>(),
        [10, 5]
    );
}

#[test]
fn what_is_too_large_or_too_much_is_refused() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions::default());
    let options = ProducerOptions {
        linger: Duration::from_secs(60),
        buffer_bytes: 1000,
        delivery_timeout: Duration::from_millis(200),
        ..ProducerOptions::default()
    };
    let producer = Producer::open(&server.dsn, &name, options).unwrap();
    let error = producer.send(None, &vec![0; 9 << 20]).err().unwrap();
    assert_eq!(error.code(), "record-too-large");
    assert_eq!(
        producer
            .send_with(None, b"", &[], Some(1))
            .err()
            .unwrap()
            .code(),
        "unknown-topic"
    );
    producer.send(None, &[0; 900]).unwrap();
    assert_eq!(
        producer.send(None, &[0; 900]).err().unwrap().code(),
        "overloaded"
    );
    let gone = Producer::open(&server.dsn, "none", ProducerOptions::default());
    assert_eq!(gone.err().unwrap().code(), "unknown-topic");
}

/// Sends numbered records while something happens, and returns what the log then holds.
fn numbers_through(server: &Server, disturb: impl FnOnce() + Send) -> (u64, Vec<u64>) {
    let (topic_id, name) = server.topic(&TopicOptions::default());
    let producer = Producer::open(&server.dsn, &name, ProducerOptions::default()).unwrap();
    let acknowledged = thread::scope(|scope| {
        let disturbing = scope.spawn(disturb);
        let mut sent = 0_u64;
        let mut receipts = Vec::new();
        while !disturbing.is_finished() || sent < 1000 {
            receipts.push(producer.send(None, &sent.to_be_bytes()).unwrap());
            sent += 1;
            if sent.is_multiple_of(20) {
                thread::sleep(Duration::from_micros(300));
            }
        }
        producer.flush().unwrap();
        assert!(receipts.iter().all(|receipt| receipt.wait().is_ok()));
        sent
    });
    let until = Instant::now() + Duration::from_secs(10);
    let mut connection = loop {
        match dyno_pubsub::Connection::open(&server.dsn) {
            Ok(connection) => break connection,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    let read = read_all(&mut connection, topic_id, 0, 0);
    assert!(
        (0..)
            .zip(&read)
            .all(|(expected, (offset, _))| *offset == expected)
    );
    let numbers = read
        .iter()
        .map(|(_, record)| u64::from_be_bytes(record.value[..].try_into().unwrap()));
    (acknowledged, numbers.collect())
}

#[test]
fn nothing_is_lost_or_doubled_when_backends_are_terminated() {
    // Its own: producers of other tests have the same name.
    let server = Server::alone();
    let kill = || {
        let mut admin = server.connect();
        for _ in 0..40 {
            thread::sleep(Duration::from_millis(15));
            let query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                         WHERE application_name = 'dyno-producer'";
            admin.client().query_one(query, &[]).unwrap();
        }
    };
    let (acknowledged, numbers) = numbers_through(&server, kill);
    assert_eq!(numbers, (0..acknowledged).collect::<Vec<_>>());
}

#[test]
fn nothing_is_lost_or_doubled_when_all_server_processes_are_killed() {
    let server = Server::alone();
    let kill = || {
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(150));
            let mut cluster = server.cluster();
            cluster.kill_all().unwrap();
            cluster.restart().unwrap();
        }
    };
    let (acknowledged, numbers) = numbers_through(&server, kill);
    assert_eq!(numbers, (0..acknowledged).collect::<Vec<_>>());
}

#[test]
fn a_producer_with_a_name_goes_on_behind_what_is_there() {
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions {
        partitions: 2,
        ..TopicOptions::default()
    });
    let open = || {
        let options = ProducerOptions {
            name: Some("archive".to_owned()),
            linger: Duration::from_secs(60),
            ..ProducerOptions::default()
        };
        Producer::open(&server.dsn, &name, options)
    };
    // Sends what is not there of so many numbers, each to the partition of its parity.
    let send_upto = |end: u64| {
        let producer = open().unwrap();
        let mut seen = [0, 0];
        for n in 0..end {
            let partition = (n % 2) as u32;
            seen[partition as usize] += 1;
            if seen[partition as usize] > producer.sent_before(partition) {
                let value = n.to_be_bytes();
                producer
                    .send_with(None, &value, &[], Some(partition))
                    .unwrap();
            }
        }
        producer.flush().unwrap();
        producer.sent_before(0) + producer.sent_before(1)
    };
    assert_eq!(
        [send_upto(101), send_upto(101), send_upto(250)],
        [0, 101, 101]
    );
    let mut connection = server.connect();
    for partition in 0..2 {
        let read = read_all(&mut connection, topic_id, partition, 0);
        let numbers: Vec<u64> = read
            .iter()
            .map(|(_, record)| u64::from_be_bytes(record.value[..].try_into().unwrap()))
            .collect();
        let expected: Vec<u64> = (0..250).filter(|n| n % 2 == partition as u64).collect();
        assert_eq!(numbers, expected);
    }
    // One that was opened before another went on is told that its place is taken, and doubles
    // nothing.
    let late = open().unwrap();
    send_upto(260);
    for n in 250..270_u64 {
        let _receipt = late.send_with(None, &n.to_be_bytes(), &[], Some((n % 2) as u32));
    }
    assert_eq!(late.flush().unwrap_err().code(), "sequence-gap");
    let read = read_all(&mut connection, topic_id, 0, 0);
    assert_eq!(read.len(), 130);
    connection
        .alter_topic(
            &name,
            &dyno_pubsub::TopicChanges {
                partitions: Some(3),
                ..Default::default()
            },
        )
        .unwrap();
    let error = open().err().unwrap();
    assert!(error.text().contains("had 2 partitions"), "{error}");
}

#[test]
fn named_producers_are_not_forgotten() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions::default());
    for named in [None, Some("archive".to_owned())] {
        let options = ProducerOptions {
            name: named,
            ..ProducerOptions::default()
        };
        let producer = Producer::open(&server.dsn, &name, options).unwrap();
        producer.send(None, b"x").unwrap();
        producer.flush().unwrap();
    }
    let mut connection = server.connect();
    let age = "UPDATE pubsub.producers SET seen_at = now() - interval '8 days' WHERE topic_id = $1";
    connection.client().execute(age, &[&topic_id]).unwrap();
    connection
        .client()
        .batch_execute("SELECT * FROM pubsub.maintain()")
        .unwrap();
    let left = "SELECT count(*), max(producer_id) < 0 FROM pubsub.producers WHERE topic_id = $1";
    let row = connection.client().query_one(left, &[&topic_id]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1)), (1, true));
}

#[test]
fn other_records_under_a_used_name_are_told_from_those_that_were_sent() {
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions::default());
    let open = || {
        let options = ProducerOptions {
            name: Some("lines".to_owned()),
            batch_records: 3,
            ..ProducerOptions::default()
        };
        Producer::open(&server.dsn, &name, options).unwrap()
    };
    let send = |producer: &Producer, numbers: std::ops::Range<u64>| {
        for number in numbers {
            let value = number.to_string();
            producer.send(Some(b"k"), value.as_bytes()).unwrap();
        }
        producer.flush().unwrap();
    };
    send(&open(), 0..20);
    let leave_out = |producer: &Producer, value: &str| {
        let left_out = producer.leave_out(Some(b"k"), value.as_bytes(), &[], 0);
        left_out.map_err(|error| error.code())
    };
    // The same ones, then more; then all of them once more, over both runs.
    for already in [20, 30] {
        let producer = open();
        assert_eq!(producer.sent_before(0), already);
        for number in 0..already {
            let known = leave_out(&producer, &number.to_string()).unwrap();
            assert_eq!(
                known,
                (number + 1).is_power_of_two() || number + 1 == already
            );
        }
        assert_eq!(leave_out(&producer, "more"), Err("bad-argument"));
        send(&producer, already..already + 10);
    }
    // The first is another.
    assert_eq!(leave_out(&open(), "1"), Err("bad-argument"));
    // One in the middle is: the next mark tells.
    let producer = open();
    let results = (0..40).map(|number: u64| {
        let value = if number == 5 {
            "other".to_owned()
        } else {
            number.to_string()
        };
        leave_out(&producer, &value)
    });
    assert_eq!(results.take_while(Result::is_ok).count(), 7);
    // What was sent by a version that stored no chain is taken for the same, and begins one.
    let mut connection = server.connect();
    let forget = format!("DELETE FROM pubsub.chains WHERE topic_id = {topic_id}");
    connection.client().batch_execute(&forget).unwrap();
    let producer = open();
    for number in 0..40 {
        assert_eq!(leave_out(&producer, &format!("any {number}")), Ok(true));
    }
    send(&producer, 40..41);
    drop(producer);
    assert_eq!(leave_out(&open(), "0"), Err("bad-argument"));
    assert_eq!(leave_out(&open(), "any 0"), Ok(true));
}
