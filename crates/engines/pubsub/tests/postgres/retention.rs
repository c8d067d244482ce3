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
