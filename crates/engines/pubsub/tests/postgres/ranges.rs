//! Ranges that end early, so that retention acts on topics that never fill one.

use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, Consumer, ConsumerOptions, TopicChanges, TopicOptions};

use super::server::Server;
use super::{base, batch, read_all};

fn ranges(connection: &mut Connection, topic_id: i32) -> Vec<(i64, i64)> {
    let query = "SELECT first_offset, end_offset FROM pubsub.ranges WHERE topic_id = $1 ORDER BY 1";
    let rows = connection.client().query(query, &[&topic_id]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn append(connection: &mut Connection, topic_id: i32, records: usize, bytes: usize) -> i64 {
    let value = vec![b'x'; bytes];
    let mut batch = batch(0, 0, &vec![&value[..]; records]);
    base(connection.append(topic_id, 0, 0, &mut batch).unwrap())
}

fn first_offset(connection: &mut Connection, topic_id: i32) -> i64 {
    connection.partitions(topic_id).unwrap()[0].first_offset
}

/// Maintains until the partition begins at an offset.
fn maintain_to(connection: &mut Connection, topic_id: i32, offset: i64) {
    let until = Instant::now() + Duration::from_secs(30);
    while first_offset(connection, topic_id) < offset {
        connection.maintain().unwrap();
        assert!(
            Instant::now() < until,
            "retention does not come to {offset}"
        );
    }
}

#[test]
fn old_records_go_though_their_range_is_not_full_and_readers_go_on_behind_them() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions {
        retention_ms: Some(8),
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    let mut consumer = Consumer::open(&server.dsn, &name, "g", ConsumerOptions::default()).unwrap();
    append(&mut connection, topic_id, 50, 100);
    let mut reader = server.connect();
    let fetched = reader.fetch(topic_id, 0, 0, 1 << 20).unwrap();
    assert_eq!(fetched.next_offset, 50);
    let mut read = 0;
    while read < 50 {
        read += consumer.poll(Duration::from_secs(5)).unwrap().len();
    }
    maintain_to(&mut connection, topic_id, 50);
    let left = ranges(&mut connection, topic_id);
    assert_eq!(
        left,
        [(50, 1_000_050)],
        "the old range is gone, the next one begins at the end"
    );
    // Both stood in the range that is gone now, at its end.
    assert_eq!(append(&mut connection, topic_id, 10, 100), 50);
    let fetched = reader.fetch(topic_id, 0, 50, 1 << 20).unwrap();
    assert_eq!(fetched.next_offset, 60);
    assert_eq!(consumer.poll(Duration::from_secs(5)).unwrap()[0].offset, 50);
}

#[test]
fn a_reader_at_the_end_of_a_range_that_ended_early_finds_the_next_one() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    append(&mut connection, topic_id, 50, 100);
    let mut reader = server.connect();
    let place = reader.fetch(topic_id, 0, 0, 1 << 20).unwrap().next_offset;
    let close = "SELECT pubsub.close_range($1, 0)";
    let closed: Option<i64> = connection
        .client()
        .query_one(close, &[&topic_id])
        .unwrap()
        .get(0);
    assert_eq!((place, closed), (50, Some(50)));
    let nothing: Option<i64> = connection
        .client()
        .query_one(close, &[&topic_id])
        .unwrap()
        .get(0);
    assert_eq!(nothing, None, "an empty range has nothing to be ended for");
    assert_eq!(reader.fetch(topic_id, 0, place, 1 << 20).unwrap().rows, []);
    append(&mut connection, topic_id, 5, 100);
    assert_eq!(
        reader
            .fetch(topic_id, 0, place, 1 << 20)
            .unwrap()
            .next_offset,
        55
    );
    assert_eq!(read_all(&mut connection, topic_id, 0, 0).len(), 55);
    assert_eq!(
        ranges(&mut connection, topic_id),
        [(0, 50), (50, 1_000_050)]
    );
}

#[test]
fn a_range_with_its_bounds_moved_is_attached_without_being_read() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    append(&mut connection, topic_id, 500, 4000);
    // The transaction reads as many blocks of the table as the sequential scans of it say: none.
    let mut transaction = connection.client().transaction().unwrap();
    let scans = format!("SELECT pg_stat_get_xact_numscans('pubsub.log_{topic_id}_0_0'::regclass)");
    let before: i64 = transaction.query_one(&scans, &[]).unwrap().get(0);
    transaction
        .query_one("SELECT pubsub.close_range($1, 0)", &[&topic_id])
        .unwrap();
    let after: i64 = transaction.query_one(&scans, &[]).unwrap().get(0);
    assert_eq!(after - before, 0);
    transaction.commit().unwrap();
}

#[test]
fn bytes_bound_a_partition_with_few_large_records() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions {
        retention_bytes: Some(1 << 20),
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    for _ in 0..40 {
        append(&mut connection, topic_id, 20, 10_000);
    }
    connection.maintain().unwrap();
    let first = first_offset(&mut connection, topic_id);
    assert!((600..790).contains(&first), "{first}");
    let states = connection.topic_states().unwrap();
    let state = states
        .iter()
        .find(|state| state.topic.name == name)
        .unwrap();
    assert!(
        state.partitions[0].bytes < 3 << 19,
        "{}",
        state.partitions[0].bytes
    );
    let kept = connection.retention().unwrap();
    let kept = kept.iter().find(|kept| kept.topic == name).unwrap();
    assert!(kept.oldest_at_us.is_some() && kept.ranges < 20, "{kept:?}");
}

#[test]
fn lowering_a_limit_works_on_a_topic_that_is_there() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    append(&mut connection, topic_id, 1000, 2000);
    connection.maintain().unwrap();
    assert_eq!(
        first_offset(&mut connection, topic_id),
        0,
        "nothing is limited yet"
    );
    let changes = TopicChanges {
        retention_bytes: Some(1 << 20),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    connection.maintain().unwrap();
    assert_eq!(
        first_offset(&mut connection, topic_id),
        0,
        "the newest records stay, however many they are"
    );
    append(&mut connection, topic_id, 10, 2000);
    connection.maintain().unwrap();
    assert_eq!(first_offset(&mut connection, topic_id), 1000);
    let changes = TopicChanges {
        retention_bytes: Some(-1),
        retention_ms: Some(3_600_000),
        range_records: Some(100),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    append(&mut connection, topic_id, 150, 10);
    connection.maintain().unwrap();
    let wide = ranges(&mut connection, topic_id);
    assert!(wide.iter().all(|(from, to)| to - from <= 160), "{wide:?}");
}

#[test]
fn a_batch_larger_than_many_ranges_makes_one() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions {
        range_records: 100,
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    append(&mut connection, topic_id, 20_000, 10);
    assert!(ranges(&mut connection, topic_id).len() <= 3);
    assert_eq!(read_all(&mut connection, topic_id, 0, 0).len(), 20_000);
}

#[test]
fn a_topic_with_more_tables_than_one_transaction_can_lock_is_dropped_in_steps() {
    let server = Server::with_settings(&[
        ("max_locks_per_transaction", "10"),
        ("max_connections", "20"),
    ]);
    let (topic_id, name) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    for partitions in (10..=100).step_by(10) {
        let changes = TopicChanges {
            partitions: Some(partitions),
            ..TopicChanges::default()
        };
        connection.alter_topic(&name, &changes).unwrap();
    }
    let drop = format!("SELECT pubsub.drop_topic('{name}')");
    let refused = connection.client().execute(&drop, &[]).unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert_eq!(refused.code().code(), "DP011");
    assert_eq!(
        refused.hint(),
        Some(&format!("CALL pubsub.drop_topic_in_steps('{name}')")[..])
    );
    connection.drop_topic(&name).unwrap();
    let left = "SELECT count(*) FROM pg_class WHERE relname LIKE $1";
    let left: i64 = connection
        .client()
        .query_one(left, &[&format!("log\\_{topic_id}\\_%")])
        .unwrap()
        .get(0);
    assert_eq!(left, 0);
    let functions = "SELECT count(*) FROM pg_proc WHERE proname LIKE $1 AND pronamespace = 'pubsub'::regnamespace";
    let functions: i64 = connection
        .client()
        .query_one(functions, &[&format!("%\\_{topic_id}\\_%")])
        .unwrap()
        .get(0);
    assert_eq!(functions, 0);
}
