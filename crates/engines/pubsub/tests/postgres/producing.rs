use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::record::Codec;
use dyno_pubsub::{Producer, ProducerOptions, TopicOptions, key};

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
        let mut log: HashMap<(i32, i64), _> = HashMap::new();
        for partition in 0..3 {
            let read = read_all(&mut connection, topic_id, partition, 0);
            log.extend(
                read.into_iter()
                    .map(|(offset, record)| ((partition, offset), record)),
            );
        }
        assert_eq!(log.len(), 5000);
        for (receipt, value, key) in sent {
            let place = receipt.wait().unwrap();
            let record = &log[&(place.partition, place.offset)];
            assert_eq!(
                (&record.value[..], record.key.as_deref()),
                (value.as_bytes(), key.as_deref())
            );
            if let Some(key) = key {
                assert_eq!(place.partition.unsigned_abs(), key::partition_of(&key, 3));
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
