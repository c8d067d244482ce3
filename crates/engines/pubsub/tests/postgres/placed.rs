//! Topics whose partitions lie on two real servers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_postgres::Retry;
use dyno_pubsub::{
    Consumer, ConsumerOptions, NamedCluster, Partitioner, Position, Producer, ProducerOptions,
    Reset, Start, TopicChanges, TopicOptions,
};

use super::read_all;
use super::server::Server;

/// A home and another cluster, named "b", with a topic of four partitions: 0 and 2 at home, 1 and 3
/// on b.
struct Two {
    home: Server,
    b: Server,
}

const TOPIC: &str = "orders";

impl Two {
    fn new() -> Two {
        let (home, b) = (Server::alone(), Server::alone());
        let made = home
            .connect()
            .create_placed_topic(TOPIC, &four(), &[on("b", &b)]);
        made.unwrap();
        Two { home, b }
    }

    fn server(&self, partition: i32) -> &Server {
        [&self.home, &self.b][(partition % 2) as usize]
    }

    /// All records by partition.
    fn log(&self) -> BTreeMap<i32, Vec<Vec<u8>>> {
        let log = (0..4).map(|partition| {
            let mut connection = self.server(partition).connect();
            let topic_id = connection.topic(TOPIC).unwrap().topic_id;
            let read = read_all(&mut connection, topic_id, partition, 0);
            assert!((0..).zip(&read).all(|(at, (offset, _))| *offset == at));
            (
                partition,
                read.into_iter().map(|(_, r)| r.value.to_vec()).collect(),
            )
        });
        log.collect()
    }
}

fn four() -> TopicOptions {
    TopicOptions {
        partitions: 4,
        ..TopicOptions::default()
    }
}

fn on(name: &str, server: &Server) -> NamedCluster {
    NamedCluster {
        name: name.to_owned(),
        dsn: server.dsn.text(),
    }
}

fn consumer(two: &Two, lease: Duration) -> Consumer {
    let options = ConsumerOptions {
        start: Start::Earliest,
        lease,
        window_records: 200,
        ..ConsumerOptions::default()
    };
    Consumer::open(&two.home.dsn, TOPIC, "readers", options).unwrap()
}

#[test]
fn a_topic_lies_on_two_servers() {
    let two = Two::new();
    for (server, its) in [(&two.home, [0, 2]), (&two.b, [1, 3])] {
        let mut connection = server.connect();
        let topic = connection.topic(TOPIC).unwrap();
        assert_eq!(topic.options.partitions, 4);
        let has = connection.partitions(topic.topic_id).unwrap();
        assert_eq!(has.iter().map(|is| is.partition).collect::<Vec<_>>(), its);
    }
    let producer = Producer::open(&two.home.dsn, TOPIC, ProducerOptions::default()).unwrap();
    let sent: Vec<_> = (0..2000_u32)
        .map(|i| {
            let key = (i % 3 != 0).then(|| (i % 50).to_be_bytes());
            let key = key.as_ref().map(|key| &key[..]);
            producer.send(key, &i.to_be_bytes()).unwrap()
        })
        .collect();
    producer.flush().unwrap();
    let log = two.log();
    for (i, receipt) in (0..2000_u32).zip(sent) {
        let place = receipt.wait().unwrap();
        assert_eq!(
            log[&place.partition][place.offset as usize],
            i.to_be_bytes()
        );
    }
    assert!(log.values().all(|records| !records.is_empty()), "{log:?}");

    // Two members share both clusters' partitions.
    let (mut one, mut other) = (
        consumer(&two, Duration::from_secs(5)),
        consumer(&two, Duration::from_secs(5)),
    );
    let mut seen = HashMap::new();
    let until = Instant::now() + Duration::from_secs(60);
    while seen.len() < 2000 {
        assert!(Instant::now() < until, "{} of 2000 came", seen.len());
        for member in [&mut one, &mut other] {
            for message in member.poll(Duration::from_millis(50)).unwrap() {
                *seen.entry(message.position()).or_insert(0) += 1;
            }
            member.commit().unwrap();
        }
    }
    assert!(seen.values().all(|count| *count == 1));
    let until = Instant::now() + Duration::from_secs(30);
    while one.assigned().len() != 2 || other.assigned().len() != 2 {
        assert!(
            Instant::now() < until,
            "{:?} {:?}",
            one.assigned(),
            other.assigned()
        );
        for member in [&mut one, &mut other] {
            member.poll(Duration::from_millis(50)).unwrap();
            member.commit().unwrap();
        }
    }
}

#[test]
fn what_cannot_be_done_on_one_server_alone_is_refused() {
    let two = Two::new();
    let mut home = two.home.connect();
    let placed =
        |error: dyno_pubsub::Error| assert_eq!(error.code(), "placed-elsewhere", "{error}");
    // A client that is sent to another cluster than the home.
    placed(
        Producer::open(&two.b.dsn, TOPIC, ProducerOptions::default())
            .err()
            .unwrap(),
    );
    placed(
        Consumer::open(&two.b.dsn, TOPIC, "g", ConsumerOptions::default())
            .err()
            .unwrap(),
    );
    placed(two.b.connect().drop_topic(TOPIC).unwrap_err());
    // SQL reaches what is on the server, and says where the rest is.
    let refusal = home
        .client()
        .query("SELECT pubsub.send('orders', 'x', part => 1)", &[])
        .unwrap_err();
    let refusal = refusal.as_db_error().unwrap();
    assert_eq!(refusal.code().code(), "DP015");
    assert!(refusal.message().contains("cluster b"), "{refusal}");
    let partition: i32 = home
        .client()
        .query_one("SELECT partition FROM pubsub.send('orders', 'x')", &[])
        .unwrap()
        .get(0);
    assert_eq!(partition % 2, 0);
}

#[test]
fn settings_change_on_both_servers_and_names_belong_to_one_cluster() {
    let two = Two::new();
    let mut home = two.home.connect();
    // The number of partitions stays; other settings change on both.
    let changes = |partitions, retention_ms| TopicChanges {
        partitions,
        retention_ms,
        ..TopicChanges::default()
    };
    let error = home
        .alter_topic(TOPIC, &changes(Some(6), None))
        .unwrap_err();
    assert_eq!(error.code(), "bad-argument");
    home.alter_topic(TOPIC, &changes(None, Some(1000))).unwrap();
    let shares = [&two.home, &two.b];
    for server in shares {
        let topic = server.connect().topic(TOPIC).unwrap();
        assert_eq!(
            (topic.options.partitions, topic.options.retention_ms),
            (4, Some(1000))
        );
    }
    // Names and passwords.
    let make = |clusters: &[NamedCluster], name: &str| {
        let made = two
            .home
            .connect()
            .create_placed_topic(name, &four(), clusters);
        made.unwrap_err().code()
    };
    assert_eq!(make(&[on("b", &two.b)], TOPIC), "name-taken");
    assert_eq!(make(&[on("b", &two.home)], "x"), "bad-argument");
    assert_eq!(make(&[on("home", &two.b)], "x"), "bad-argument");
    assert_eq!(
        make(&[on("c", &two.b), on("d", &two.b)], "x"),
        "bad-argument"
    );
    let secret = NamedCluster {
        name: "e".to_owned(),
        dsn: format!("{} password=x", two.b.dsn.text()),
    };
    assert_eq!(make(&[secret], "x"), "bad-argument");
    // Gone from both, and the name is free again.
    home.drop_topic(TOPIC).unwrap();
    for server in shares {
        assert_eq!(
            server.connect().topic(TOPIC).unwrap_err().code(),
            "unknown-topic"
        );
    }
    home.create_placed_topic(TOPIC, &four(), &[on("b", &two.b)])
        .unwrap();
}

#[test]
fn keys_go_by_the_topics_partitioner_on_every_cluster() {
    let (home, b) = (Server::alone(), Server::alone());
    let options = TopicOptions {
        partitioner: Partitioner::Murmur2,
        ..four()
    };
    home.connect()
        .create_placed_topic(TOPIC, &options, &[on("b", &b)])
        .unwrap();
    for server in [&home, &b] {
        let topic = server.connect().topic(TOPIC).unwrap();
        assert_eq!(topic.options.partitioner, Partitioner::Murmur2);
    }
    let producer = Producer::open(&home.dsn, TOPIC, ProducerOptions::default()).unwrap();
    let send = "SELECT partition FROM pubsub.send($1, 'x', key => convert_to($2, 'UTF8'))";
    for n in 0..20 {
        let key = format!("customer-{n}");
        let receipt = producer.send(Some(key.as_bytes()), b"x").unwrap();
        let partition = receipt.wait().unwrap().partition;
        // SQL sends to the partitions of its own server, and refuses keys of others.
        let server = [&home, &b][(partition % 2) as usize];
        let row = server.connect().client().query_one(send, &[&TOPIC, &key]);
        assert_eq!(row.unwrap().get::<_, i32>(0), partition, "{key}");
    }
}

#[test]
fn a_topic_that_was_half_made_is_made_anew() {
    let (home, b) = (Server::alone(), Server::alone());
    let dead = NamedCluster {
        name: "c".to_owned(),
        dsn: "host=/nonexistent user=nobody dbname=none".to_owned(),
    };
    let error = home
        .connect()
        .create_placed_topic(TOPIC, &four(), &[on("b", &b), dead])
        .unwrap_err();
    assert_eq!((error.code(), error.retry()), ("server-lost", Retry::Safe));
    assert!(error.text().contains("cluster c"), "{error}");
    // As it is when the home dies before its own commit.
    let identity = home.connect().identity().unwrap();
    let left = "SELECT pubsub.create_share($1, 4, 'none', NULL, NULL, 1000, false, 'fnv1a', 1, $2::text::uuid, '{1,2}')";
    b.connect()
        .client()
        .execute(left, &[&TOPIC, &identity])
        .unwrap();
    home.connect()
        .create_placed_topic(TOPIC, &four(), &[on("b", &b)])
        .unwrap();
    let two = Two { home, b };
    let producer = Producer::open(&two.home.dsn, TOPIC, ProducerOptions::default()).unwrap();
    let receipt = producer.send_with(None, b"x", &[], Some(3)).unwrap();
    assert_eq!(receipt.wait().unwrap().offset, 0);
}

#[test]
fn a_group_is_reset_on_the_cluster_that_has_the_partition_and_refused_where_none_has() {
    let two = Two::new();
    let mut reader = consumer(&two, Duration::from_secs(10));
    reader.poll(Duration::ZERO).unwrap();
    let reset = |partition| {
        let reset = Reset {
            to: Start::Earliest,
            partition: Some(partition),
            force: true,
        };
        two.home.connect().reset_group(TOPIC, "readers", &reset)
    };
    for partition in 0..4 {
        let moved = reset(partition).unwrap();
        let moved: Vec<i32> = moved.iter().map(|moved| moved.partition).collect();
        assert_eq!(moved, [partition]);
    }
    let error = reset(9).expect_err("a partition that no cluster has");
    assert_eq!(error.code(), "unknown-topic");
    assert!(error.text().contains("partition 9"), "{error}");
}

#[test]
fn a_group_that_was_dropped_on_one_cluster_alone_is_dropped_by_the_next_attempt() {
    let two = Two::new();
    let mut reader = consumer(&two, Duration::from_secs(10));
    reader.poll(Duration::ZERO).unwrap();
    // As it is when the connection to the home was lost before the home's own drop.
    two.b.connect().drop_group(TOPIC, "readers", true).unwrap();
    let mut home = two.home.connect();
    home.drop_group(TOPIC, "readers", true).unwrap();
    assert_eq!(home.groups(TOPIC).unwrap(), Vec::<String>::new());
    let error = home.drop_group(TOPIC, "readers", true).unwrap_err();
    assert_eq!(error.code(), "unknown-group");
}

#[test]
fn a_dead_cluster_fails_its_own_partitions_alone() {
    let two = Two::new();
    let options = ProducerOptions {
        delivery_timeout: Duration::from_secs(1),
        ..ProducerOptions::default()
    };
    let mut reader = consumer(&two, Duration::from_secs(2));
    two.b.cluster().kill_all().unwrap();
    let producer = Producer::open(&two.home.dsn, TOPIC, options).unwrap();
    let there = producer.send_with(None, b"b", &[], Some(1)).unwrap();
    let here = producer.send_with(None, b"a", &[], Some(2)).unwrap();
    assert_eq!(here.wait().unwrap().partition, 2);
    let error = there.wait().unwrap_err();
    assert_eq!(
        (error.code(), error.retry()),
        ("server-lost", Retry::Safe),
        "{error}"
    );
    assert!(error.text().contains("cluster b"), "{error}");
    // Records without a key find the partitions that live.
    let receipts: Vec<_> = (0..50)
        .map(|_| producer.send(None, &[0; 9000]).unwrap())
        .collect();
    assert!(receipts.iter().any(|receipt| receipt.wait().is_ok()));
    // The consumer reads what is at home, and goes on doing so after the lease at b has lapsed.
    let mut seen = 0;
    let until = Instant::now() + Duration::from_secs(60);
    let mut lapsed = false;
    while seen == 0 || !lapsed {
        assert!(
            Instant::now() < until,
            "{seen} seen, {:?}",
            reader.assigned()
        );
        match reader.poll(Duration::from_millis(100)) {
            Ok(messages) => seen += messages.iter().filter(|m| m.partition % 2 == 0).count(),
            Err(error) => assert!(error.text().contains("cluster b"), "{error}"),
        }
        lapsed = reader
            .assigned()
            .iter()
            .all(|owned| owned.partition % 2 == 0);
    }
    assert_eq!(reader.assigned().len(), 2);
    reader.commit().unwrap();
}

#[test]
fn nothing_is_lost_or_doubled_when_a_cluster_is_killed_in_mid_run() {
    let two = Two::new();
    let (over, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let sent = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let producer =
                Producer::open(&two.home.dsn, TOPIC, ProducerOptions::default()).unwrap();
            let mut receipts = Vec::new();
            let mut number = 0_u64;
            while !over.load(Ordering::Acquire) {
                let partition = (number % 4) as u32;
                let value = number.to_be_bytes();
                receipts.push(
                    producer
                        .send_with(None, &value, &[], Some(partition))
                        .unwrap(),
                );
                number += 1;
                if number.is_multiple_of(20) {
                    thread::sleep(Duration::from_millis(2));
                }
            }
            producer.flush().unwrap();
            done.store(true, Ordering::Release);
            assert!(receipts.iter().all(|receipt| receipt.wait().is_ok()));
            number
        });
        let reading = scope.spawn(|| read_until_end(&two, &done));
        // The second time for longer than the reader's lease.
        for away_ms in [300, 2500, 300] {
            thread::sleep(Duration::from_millis(400));
            let mut b = two.b.cluster();
            b.kill_all().unwrap();
            thread::sleep(Duration::from_millis(away_ms));
            b.restart().unwrap();
        }
        over.store(true, Ordering::Release);
        let sent = sending.join().unwrap();
        assert_eq!(reading.join().unwrap(), sent);
        sent
    });
    // In the log once, in order.
    for (partition, values) in two.log() {
        let expected = (0..sent).filter(|number| number % 4 == partition as u64);
        let expected: Vec<Vec<u8>> = expected
            .map(|number| number.to_be_bytes().to_vec())
            .collect();
        assert!(
            values == expected,
            "partition {partition}: {} of {}",
            values.len(),
            expected.len()
        );
    }
}

/// Reads as a group until everything that was sent has come; nothing may come twice beyond what the
/// group counts as redelivered.
fn read_until_end(two: &Two, done: &AtomicBool) -> u64 {
    let mut reader = consumer(two, Duration::from_millis(1500));
    let mut seen: HashMap<Position, u32> = HashMap::new();
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        assert!(Instant::now() < until, "{} came", seen.len());
        if let Ok(messages) = reader.poll(Duration::from_millis(50)) {
            for message in messages {
                *seen.entry(message.position()).or_insert(0) += 1;
            }
        }
        // What cannot be committed now is committed by a later call, or comes again.
        let committed = reader.commit().is_ok();
        if done.load(Ordering::Acquire) && committed {
            let lags = two.home.connect().group_lag(TOPIC, "readers").unwrap();
            assert_eq!(lags.len(), 4);
            if lags.iter().map(|lag| lag.lag).sum::<i64>() == 0 {
                let twice: i64 = seen.values().map(|count| i64::from(count - 1)).sum();
                let allowed: i64 = lags.iter().map(|lag| lag.redelivered).sum();
                assert!(twice <= allowed, "{twice} came twice, {allowed} may");
                let all: i64 = lags.iter().map(|lag| lag.next_offset).sum();
                assert_eq!(seen.len() as i64, all);
                return all as u64;
            }
        }
    }
}
