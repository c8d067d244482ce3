use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, Dsn, Partitioner, TopicOptions, schema};

use super::server::Server;

/// A database of its own on the shared server.
fn database(server: &Server, name: &str) -> Dsn {
    let mut admin = server.connect();
    admin
        .client()
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .unwrap();
    let config = server.dsn.config();
    let dyno_postgres::postgres::config::Host::Unix(socket) = &config.get_hosts()[0] else {
        panic!("a private cluster has a socket");
    };
    Dsn::unix(
        socket,
        config.get_ports()[0],
        config.get_user().unwrap(),
        name,
    )
}

#[test]
fn many_install_at_once() {
    let server = Server::shared();
    let dsn = database(&server, "installed");
    let mut before = Connection::open(&dsn).unwrap();
    assert_eq!(before.check_schema().unwrap_err().code(), "not-installed");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Connection::open(&dsn).unwrap().install().unwrap());
        }
    });
    before.check_schema().unwrap();
    let again = before.install().unwrap();
    assert_eq!((again.from, again.to), (schema::VERSION, schema::VERSION));
}

#[test]
fn a_newer_schema_is_refused_by_name() {
    let server = Server::shared();
    let dsn = database(&server, "newer");
    let mut connection = Connection::open(&dsn).unwrap();
    connection.install().unwrap();
    let newer = format!(
        "UPDATE pubsub.schema_version SET version = {}",
        schema::VERSION + 1
    );
    connection.client().execute(&newer, &[]).unwrap();
    for error in [
        connection.install().unwrap_err(),
        connection.check_schema().unwrap_err(),
    ] {
        assert_eq!(error.code(), "newer-schema");
        assert!(
            error
                .text()
                .contains(&format!("version {}", schema::VERSION + 1)),
            "{error}"
        );
    }
}

/// The tables of version 1 are those of the file that made them, which never changes.
#[test]
fn an_earlier_schema_is_migrated_with_what_is_in_it() {
    let server = Server::shared();
    let dsn = database(&server, "earlier");
    let mut connection = Connection::open(&dsn).unwrap();
    connection
        .client()
        .batch_execute(concat!(
            "CREATE SCHEMA pubsub; CREATE TABLE pubsub.schema_version (version int NOT NULL, \
             installed_at timestamptz NOT NULL DEFAULT now()); INSERT INTO pubsub.schema_version VALUES (1);",
            include_str!("../../sql/tables_1.sql"),
            "INSERT INTO pubsub.topics (name, partitions, compression, range_records, retain_for_groups) \
             VALUES ('old', 1, 'none', 1000, false); \
             INSERT INTO pubsub.partitions (topic_id, partition, next_offset) VALUES (1, 0, 7)"
        ))
        .unwrap();
    let error = connection.check_schema().unwrap_err();
    assert_eq!(error.code(), "not-installed", "{error}");
    let done = connection.install().unwrap();
    assert_eq!((done.from, done.to), (1, schema::VERSION));
    connection.check_schema().unwrap();
    let asked = connection
        .client()
        .query_one("SELECT pubsub.await(1, 0, 7)", &[])
        .unwrap();
    assert!(asked.get::<_, bool>(0));
}

#[test]
fn topics_are_made_changed_and_dropped() {
    let server = Server::shared();
    let mut connection = server.connect();
    let options = TopicOptions {
        partitions: 3,
        ..TopicOptions::default()
    };
    let long = "a.long_name-".repeat(8);
    let topic_id = connection.create_topic(&long, &options).unwrap();
    assert_eq!(connection.topic(&long).unwrap().options, options);
    let more = dyno_pubsub::TopicChanges {
        partitions: Some(5),
        ..Default::default()
    };
    connection.alter_topic(&long, &more).unwrap();
    assert_eq!(connection.partitions(topic_id).unwrap().len(), 5);
    assert_eq!(
        connection.create_topic(&long, &options).unwrap_err().code(),
        "name-taken"
    );
    for name in ["", "a b", "é", &"x".repeat(101)] {
        assert_eq!(
            connection.create_topic(name, &options).unwrap_err().code(),
            "bad-argument",
            "{name}"
        );
    }
    let fewer = dyno_pubsub::TopicChanges {
        partitions: Some(2),
        ..Default::default()
    };
    assert_eq!(
        connection.alter_topic(&long, &fewer).unwrap_err().code(),
        "bad-argument"
    );
    connection.drop_topic(&long).unwrap();
    assert_eq!(connection.topic(&long).unwrap_err().code(), "unknown-topic");
    let left: i64 = connection
        .client()
        .query_one(
            "SELECT count(*) FROM pg_class WHERE relname LIKE $1",
            &[&format!("log\\_{topic_id}\\_%")],
        )
        .unwrap()
        .get(0);
    assert_eq!(left, 0);
}

#[test]
fn a_log_of_version_one_is_migrated_with_what_is_in_it() {
    let server = Server::shared();
    let dsn = database(&server, "first");
    let mut connection = Connection::open(&dsn).unwrap();
    connection.install().unwrap();
    let topic_id = connection
        .create_topic("old", &TopicOptions::default())
        .unwrap();
    let producer = connection.new_producer().unwrap();
    connection
        .append(
            topic_id,
            0,
            0,
            &mut super::batch(producer, 0, &[b"a", b"b"]),
        )
        .unwrap();
    // Back to what version 1 had.
    connection
        .client()
        .batch_execute(
            "DROP TABLE pubsub.time_spans; ALTER TABLE pubsub.log_1_0 DROP COLUMN span_latest; \
             ALTER TABLE pubsub.partitions DROP COLUMN span_latest, DROP COLUMN span_latest_before; \
             DROP TABLE pubsub.kafka_staged_offsets, pubsub.kafka_staged, pubsub.kafka_open, pubsub.kafka_transactions CASCADE; \
             DROP TABLE pubsub.kafka_offsets, pubsub.kafka_groups, pubsub.kafka_nodes; DROP TABLE pubsub.chains; \
             DROP TABLE pubsub.placements, pubsub.clusters, pubsub.identity CASCADE; \
             ALTER TABLE pubsub.topics DROP COLUMN share, DROP COLUMN home, DROP COLUMN partitioner; \
             ALTER TABLE pubsub.partitions DROP COLUMN awaited; \
             DROP TABLE pubsub.brokers; \
             ALTER TABLE pubsub.partitions ADD COLUMN lease_until timestamptz; \
             UPDATE pubsub.schema_version SET version = 1",
        )
        .unwrap();
    let mut connection = Connection::open(&dsn).unwrap();
    let error = connection.check_schema().unwrap_err();
    assert_eq!(error.code(), "not-installed", "{error}");
    let installed = connection.install().unwrap();
    assert_eq!((installed.from, installed.to), (1, schema::VERSION));
    connection
        .append(topic_id, 0, 0, &mut super::batch(producer, 2, &[b"c"]))
        .unwrap();
    assert_eq!(connection.topic("old").unwrap().share, None);
    let values: Vec<_> = super::read_all(&mut connection, topic_id, 0, 0)
        .into_iter()
        .map(|(_, record)| record.value.to_vec())
        .collect();
    assert_eq!(values, [b"a", b"b", b"c"]);
}

/// The range of a log of version 2 has no bounds that can be moved without reading it, and was made
/// by a function that is gone.
#[test]
fn a_log_of_version_two_is_migrated_and_its_range_can_end_early() {
    let server = Server::shared();
    let dsn = database(&server, "second");
    let mut connection = Connection::open(&dsn).unwrap();
    connection
        .client()
        .batch_execute(concat!(
            "CREATE SCHEMA pubsub; CREATE TABLE pubsub.schema_version (version int NOT NULL, \
             installed_at timestamptz NOT NULL DEFAULT now()); INSERT INTO pubsub.schema_version VALUES (2);",
            include_str!("../../sql/tables_1.sql"),
            include_str!("../../sql/tables_2.sql"),
            include_str!("version_2.sql"),
        ))
        .unwrap();
    assert_eq!(
        connection.check_schema().unwrap_err().code(),
        "not-installed"
    );
    let installed = connection.install().unwrap();
    assert_eq!((installed.from, installed.to), (2, schema::VERSION));
    let topic = connection.topic("old").unwrap();
    assert_eq!(topic.options.range_records, 1_000_000);
    let before = super::read_all(&mut connection, topic.topic_id, 0, 0);
    let values: Vec<_> = before
        .iter()
        .map(|(_, record)| record.value.to_vec())
        .collect();
    assert_eq!(values, [b"a".to_vec(), b"b".to_vec()]);
    let closed: Option<i64> = connection
        .client()
        .query_one("SELECT pubsub.close_range($1, 0)", &[&topic.topic_id])
        .unwrap()
        .get(0);
    assert_eq!(closed, Some(2));
    let producer = connection.new_producer().unwrap();
    connection
        .append(
            topic.topic_id,
            0,
            0,
            &mut super::batch(producer, 0, &[b"c"]),
        )
        .unwrap();
    assert_eq!(
        super::read_all(&mut connection, topic.topic_id, 0, 0).len(),
        3
    );
    connection.drop_topic("old").unwrap();
}

/// Functions of version 4 have one parameter less. If they stayed beside those of version 5, a call
/// with defaults would fit both and be refused.
#[test]
fn topics_of_version_four_keep_their_keys_where_they_are() {
    let server = Server::shared();
    let dsn = database(&server, "fourth");
    let mut connection = Connection::open(&dsn).unwrap();
    connection.install().unwrap();
    let options = TopicOptions {
        partitions: 7,
        ..TopicOptions::default()
    };
    connection.create_topic("old", &options).unwrap();
    let send = "SELECT partition FROM pubsub.send('old', 'x', key => convert_to($1, 'UTF8'))";
    let places = |connection: &mut Connection| -> Vec<i32> {
        let place = |n: i32| {
            let row = connection.client().query_one(send, &[&format!("key {n}")]);
            row.unwrap().get(0)
        };
        (0..20).map(place).collect()
    };
    let before = places(&mut connection);
    connection
        .client()
        .batch_execute(include_str!("version_4.sql"))
        .unwrap();
    let mut connection = Connection::open(&dsn).unwrap();
    let installed = connection.install().unwrap();
    assert_eq!((installed.from, installed.to), (4, schema::VERSION));
    let topic = connection.topic("old").unwrap();
    assert_eq!(topic.options.partitioner, Partitioner::Fnv1a);
    assert_eq!(places(&mut connection), before);
    connection
        .client()
        .execute("SELECT pubsub.create_topic('new')", &[])
        .unwrap();
}

/// Version 5 moved what was done to a table with payloads of its own. A worker that is about to
/// note there what it has done, while the payloads are moved, loses nothing.
#[test]
fn what_a_queue_of_version_five_has_done_is_still_there() {
    let server = Server::shared();
    let dsn = database(&server, "fifth");
    let mut connection = Connection::open(&dsn).unwrap();
    connection.install().unwrap();
    let as_in_version_five = "SELECT pubsub.create_queue('old', keep_done => true); \
         SELECT pubsub.queue_send('old', 'new'); \
         ALTER TABLE pubsub.queue_1_done ADD COLUMN sent_at timestamptz NOT NULL, \
             ADD COLUMN headers jsonb, ADD COLUMN payload bytea NOT NULL; \
         INSERT INTO pubsub.queue_1_done (message_id, attempts, sent_at, payload) \
         VALUES (-1, 2, now(), 'done'); \
         DROP TABLE pubsub.kafka_staged_offsets, pubsub.kafka_staged, pubsub.kafka_open, pubsub.kafka_transactions CASCADE; \
         DROP TABLE pubsub.time_spans; \
         ALTER TABLE pubsub.partitions DROP COLUMN span_latest, DROP COLUMN span_latest_before; \
         DROP TABLE pubsub.brokers; \
         ALTER TABLE pubsub.partitions ADD COLUMN lease_until timestamptz; \
         UPDATE pubsub.schema_version SET version = 5";
    connection
        .client()
        .batch_execute(as_in_version_five)
        .unwrap();
    let mut worker = Connection::open(&dsn).unwrap();
    let note = "BEGIN; INSERT INTO pubsub.queue_1_done (message_id, attempts, sent_at, payload) \
                VALUES (-2, 1, now(), 'late')";
    worker.client().batch_execute(note).unwrap();
    let installing = thread::spawn(move || (connection.install(), connection));
    let mut watch = Connection::open(&dsn).unwrap();
    let waits = "SELECT pid FROM pg_stat_activity \
                 WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let until = Instant::now() + Duration::from_secs(30);
    while watch.client().query(waits, &[]).unwrap().is_empty() {
        assert!(Instant::now() < until, "the installation does not wait");
    }
    worker.client().batch_execute("COMMIT").unwrap();
    let (installed, mut connection) = installing.join().unwrap();
    let installed = installed.unwrap();
    assert_eq!((installed.from, installed.to), (5, schema::VERSION));
    let acknowledge = "SELECT pubsub.queue_ack('old', ARRAY[message_id], ARRAY[claim]) \
                         FROM pubsub.queue_claim('old')";
    connection.client().execute(acknowledge, &[]).unwrap();
    let done = "SELECT convert_from(payload, 'UTF8'), attempts FROM pubsub.queue_done('old')";
    let rows = connection.client().query(done, &[]).unwrap();
    let done: Vec<(String, i32)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected = [("late", 1), ("done", 2), ("new", 1)];
    assert_eq!(
        done,
        expected.map(|(payload, attempts)| (payload.to_owned(), attempts))
    );
}
