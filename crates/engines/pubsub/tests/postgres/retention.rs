use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, Consumer, ConsumerOptions, Start, TopicChanges, TopicOptions};

use super::server::Server;
use super::{base, batch, read_all};

const VALUES: [&[u8]; 30] = [&[b'x'; 900]; 30];

fn filled(server: &Server) -> (i32, String, Connection) {
    let (topic_id, name) = server.topic(&TopicOptions {
        range_records: 100,
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    for _ in 0..20 {
        base(
            connection
                .append(topic_id, 0, 0, &mut batch(0, 0, &VALUES))
                .unwrap(),
        );
    }
    (topic_id, name, connection)
}

fn maintain(connection: &mut Connection, topic: &str) -> Vec<(i64, String)> {
    let query =
        "SELECT coalesce(first_offset, -1), outcome FROM pubsub.maintain() WHERE topic = $1";
    let rows = connection.client().query(query, &[&topic]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn whole_ranges_go_and_a_reader_is_told() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name, mut connection) = filled(&server);
    let mut reader = server.connect();
    let fetched = reader.fetch(topic_id, 0, 0, 20_000).unwrap();
    let place = fetched.next_offset;
    assert!(place < 100);
    let changes = TopicChanges {
        retention_bytes: Some(300_000),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    assert!(!maintain(&mut connection, &name).is_empty());
    let first = connection.partitions(topic_id).unwrap()[0].first_offset;
    assert!(first > 100, "{first}");
    let error = reader.fetch(topic_id, 0, place, 20_000).unwrap_err();
    assert_eq!(error.code(), "offset-out-of-range");
    let read = read_all(&mut reader, topic_id, 0, first);
    assert_eq!((read[0].0, read.len() as i64), (first, 600 - first));
    // Nothing more to do, and appending goes on.
    assert!(maintain(&mut connection, &name).is_empty());
    assert_eq!(
        base(
            connection
                .append(topic_id, 0, 0, &mut batch(0, 0, &VALUES))
                .unwrap()
        ),
        600
    );
}

#[test]
fn age_decides_too_and_groups_may_hold_back() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name, mut connection) = filled(&server);
    let join = "SELECT pubsub.join_group($1, 'slow', 'm', start => 'earliest')";
    connection.client().execute(join, &[&name]).unwrap();
    let changes = TopicChanges {
        retention_ms: Some(1),
        retain_for_groups: Some(true),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    assert!(maintain(&mut connection, &name).is_empty());
    let commit =
        "SELECT pubsub.poll($1, 'slow', 'm', 250), pubsub.commit($1, 'slow', 'm', 0, 1, 250)";
    connection.client().execute(commit, &[&name]).unwrap();
    assert_eq!(maintain(&mut connection, &name).len(), 2);
    let changes = TopicChanges {
        retain_for_groups: Some(false),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    maintain(&mut connection, &name);
    assert!(connection.partitions(topic_id).unwrap()[0].first_offset >= 600);
    // The group lost what it had not read, and is told how much.
    base(
        connection
            .append(topic_id, 0, 0, &mut batch(0, 0, &VALUES))
            .unwrap(),
    );
    let poll = "SELECT min(message_offset) FROM pubsub.poll($1, 'slow', 'm')";
    let first: i64 = connection
        .client()
        .query_one(poll, &[&name])
        .unwrap()
        .get(0);
    assert_eq!(first, 600);
    let lag = "SELECT lost FROM pubsub.group_lag($1, 'slow')";
    let lost: i64 = connection.client().query_one(lag, &[&name]).unwrap().get(0);
    assert_eq!(lost, 350);
}

#[test]
fn a_consumer_that_lost_a_partition_and_its_records_at_once_goes_on() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name, mut connection) = filled(&server);
    let options = ConsumerOptions {
        start: Start::Earliest,
        fetch_bytes: 20_000,
        lease: Duration::from_secs(600),
        ..ConsumerOptions::default()
    };
    let mut consumer = Consumer::open(&server.dsn, &name, "g", options).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while consumer
        .poll(Duration::from_millis(100))
        .unwrap()
        .is_empty()
    {
        assert!(Instant::now() < until, "nothing comes");
    }
    // Somebody else had it meanwhile, and the consumer has not heard of it yet.
    let take = "UPDATE pubsub.assignments SET generation = generation + 1 WHERE group_id IN
                (SELECT group_id FROM pubsub.groups WHERE topic_id = $1)";
    assert_eq!(connection.client().execute(take, &[&topic_id]).unwrap(), 1);
    let changes = TopicChanges {
        retention_bytes: Some(300_000),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    assert!(!maintain(&mut connection, &name).is_empty());
    assert_eq!(consumer.poll(Duration::from_millis(100)).unwrap(), []);
    assert_eq!(consumer.assigned(), [], "it is somebody else's");
}

#[test]
fn a_query_in_the_way_is_reported_and_writers_go_on() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name, mut connection) = filled(&server);
    let mut holder = server.connect();
    let mut open = holder.client().transaction().unwrap();
    open.query_one(
        &format!("SELECT count(*) FROM pubsub.log_{topic_id}_0"),
        &[],
    )
    .unwrap();
    let changes = TopicChanges {
        retention_ms: Some(1),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    let done = maintain(&mut connection, &name);
    assert!(done.len() == 1 && done[0].1.starts_with("busy"), "{done:?}");
    assert_eq!(
        base(
            connection
                .append(topic_id, 0, 0, &mut batch(0, 0, &VALUES))
                .unwrap()
        ),
        600
    );
    assert_eq!(read_all(&mut connection, topic_id, 0, 0).len(), 630);
    open.rollback().unwrap();
    assert!(maintain(&mut connection, &name).len() >= 5);
}

#[test]
fn maintenance_may_run_beside_itself() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name, mut connection) = filled(&server);
    let changes = TopicChanges {
        retention_ms: Some(1),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut connection = server.connect();
                for _ in 0..5 {
                    connection.maintain().unwrap();
                }
            });
        }
    });
    connection.maintain().unwrap();
    assert!(connection.partitions(topic_id).unwrap()[0].first_offset >= 600);
    assert_eq!(
        base(
            connection
                .append(topic_id, 0, 0, &mut batch(0, 0, &VALUES))
                .unwrap()
        ),
        600
    );
}

fn tables(connection: &mut Connection, topic: &str) -> i32 {
    let kept = connection.retention().unwrap();
    let of_topic = kept.iter().find(|kept| kept.topic == topic).unwrap();
    of_topic.ranges
}

/// (count, smallest offset) of a query for offsets.
fn seen(connection: &mut Connection, source: &str) -> (i64, Option<i64>) {
    let query = format!("SELECT count(*), min(message_offset) FROM {source}");
    let row = connection.client().query_one(&query, &[]).unwrap();
    (row.get(0), row.get(1))
}

#[test]
fn deleted_records_are_not_read_and_whole_ranges_of_them_go() {
    let server = Server::shared();
    let (topic_id, name, mut connection) = filled(&server);
    let before = tables(&mut connection, &name);
    let deleted = connection.delete_records(topic_id, 0, Some(250));
    assert_eq!(deleted.unwrap(), 250);
    assert_eq!(tables(&mut connection, &name), before - 2);
    let place = connection.partitions(topic_id).unwrap()[0].clone();
    assert_eq!((place.first_offset, place.next_offset), (250, 600));
    assert_eq!(
        connection.offset_of(&name, 0, Start::Earliest).unwrap(),
        250
    );

    // The row that holds 250 begins before it.
    let mut reader = server.connect();
    let rows = reader.fetch(topic_id, 0, 250, 1 << 20).unwrap().rows;
    assert!(rows[0].base_offset < 250, "{}", rows[0].base_offset);
    let error = server
        .connect()
        .fetch(topic_id, 0, 249, 1 << 20)
        .unwrap_err();
    assert_eq!(error.code(), "offset-out-of-range");
    let all = format!("pubsub.messages('{name}', 0, 0, 1000)");
    assert_eq!(seen(&mut connection, &all), (350, Some(250)));
    let view = format!("pubsub.\"messages_{name}\"");
    assert_eq!(seen(&mut connection, &view), (350, Some(250)));

    // A smaller offset brings nothing back, and one that is not there is refused.
    let again = connection.delete_records(topic_id, 0, Some(100));
    assert_eq!(again.unwrap(), 250);
    for wrong in [601, -7] {
        let error = connection
            .delete_records(topic_id, 0, Some(wrong))
            .unwrap_err();
        assert_eq!(error.code(), "offset-out-of-range", "{error}");
    }
    let nowhere = connection.delete_records(topic_id, 1, None).unwrap_err();
    assert_eq!(nowhere.code(), "unknown-topic");
    let nothing = connection.delete_records(i32::MAX, 0, None).unwrap_err();
    assert_eq!(nothing.code(), "unknown-topic");

    // All of it goes at once, with the open range, and the next record follows the last one.
    assert_eq!(connection.delete_records(topic_id, 0, None).unwrap(), 600);
    let rows = format!("SELECT count(*) FROM pubsub.log_{topic_id}_0");
    let rows: i64 = connection.client().query_one(&rows, &[]).unwrap().get(0);
    assert_eq!(rows, 0);
    base(
        connection
            .append(topic_id, 0, 0, &mut batch(0, 0, &[b"next"]))
            .unwrap(),
    );
    let read = read_all(&mut reader, topic_id, 0, 600);
    assert_eq!((read.len(), read[0].0), (1, 600));
}

#[test]
fn a_group_goes_on_behind_deleted_records_although_it_had_them_kept() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name, mut connection) = filled(&server);
    let changes = TopicChanges {
        retain_for_groups: Some(true),
        ..TopicChanges::default()
    };
    connection.alter_topic(&name, &changes).unwrap();
    let join = "SELECT pubsub.join_group($1, 'slow', 'm', start => 'earliest')";
    connection.client().execute(join, &[&name]).unwrap();
    let before = tables(&mut connection, &name);
    connection.delete_records(topic_id, 0, Some(250)).unwrap();
    assert_eq!(tables(&mut connection, &name), before - 2);
    let poll = format!("pubsub.poll('{name}', 'slow', 'm', 10)");
    assert_eq!(seen(&mut connection, &poll), (10, Some(250)));
    let lag = "SELECT lost FROM pubsub.group_lag($1, 'slow')";
    let lost: i64 = connection.client().query_one(lag, &[&name]).unwrap().get(0);
    assert_eq!(lost, 250);
}

#[test]
fn ranges_of_deleted_records_that_a_reader_holds_go_later() {
    let _alone = Server::maintenance();
    let server = Server::shared();
    let (topic_id, name, mut connection) = filled(&server);
    let before = tables(&mut connection, &name);
    let mut holder = server.connect();
    let mut open = holder.client().transaction().unwrap();
    let reads = format!("SELECT count(*) FROM pubsub.log_{topic_id}_0");
    open.query_one(&reads, &[]).unwrap();
    // They are gone for other readers, but not from the disk.
    let deleted = connection.delete_records(topic_id, 0, Some(300)).unwrap();
    assert_eq!((deleted, tables(&mut connection, &name)), (300, before));
    open.rollback().unwrap();
    // The topic has no retention, and yet maintenance looks after it until they are dropped.
    assert_eq!(maintain(&mut connection, &name).len(), 3);
    assert_eq!(tables(&mut connection, &name), before - 3);
    assert!(maintain(&mut connection, &name).is_empty());
}

#[test]
fn the_view_of_an_older_topic_leaves_deleted_records_out_as_well() {
    let server = Server::shared();
    let (topic_id, name, mut connection) = filled(&server);
    let view = format!("pubsub.\"messages_{name}\"");
    // As version 4 made it.
    let older = format!(
        "CREATE OR REPLACE VIEW {view} AS SELECT 0 AS partition, m.message_offset, m.\"time\", r.appended_at, \
                m.key, m.headers, m.value \
           FROM pubsub.log_{topic_id}_0 AS r, pubsub.unpack(r.base_offset, r.flags, r.body) AS m"
    );
    connection.client().batch_execute(&older).unwrap();
    connection.delete_records(topic_id, 0, Some(595)).unwrap();
    assert_eq!(seen(&mut connection, &view), (5, Some(595)));
}
