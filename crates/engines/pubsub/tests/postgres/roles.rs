//! Roles that do not own the schema: what they are granted is enough, also where a range ends, and
//! no more.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dyno_pubsub::{
    Connection, Consumer, ConsumerOptions, Dsn, Position, Producer, ProducerOptions, Queue,
    QueueOptions, Reader, TopicChanges, TopicOptions,
};

use super::server::Server;

/// The server as a role sees it.
fn role(server: &Server, name: &str) -> Dsn {
    let create = format!("DROP ROLE IF EXISTS {name}; CREATE ROLE {name}");
    server.connect().client().batch_execute(&create).unwrap();
    Dsn::parse(&format!("{} options='-c role={name}'", server.dsn.text())).unwrap()
}

fn run(server: &Server, statement: &str) {
    server.connect().client().batch_execute(statement).unwrap();
}

fn small_ranges(server: &Server) -> String {
    let options = TopicOptions {
        range_records: 100,
        ..TopicOptions::default()
    };
    server.topic(&options).1
}

/// The manual names every function that runs with the owner's rights.
#[test]
fn functions_with_the_rights_of_the_owner_are_in_the_manual() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/pubsub.md");
    let manual = fs::read_to_string(manual).unwrap();
    let server = Server::shared();
    let query = "SELECT proname FROM pg_proc \
                 WHERE prosecdef AND pronamespace = 'pubsub'::regnamespace";
    let rows = server.connect().client().query(query, &[]).unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let name: &str = row.get(0);
        assert!(manual.contains(&format!("`pubsub.{name}`")), "{name}");
    }
}

#[test]
fn a_producer_that_is_not_the_owner_gets_past_the_end_of_a_range() {
    let server = Server::shared();
    let name = small_ranges(&server);
    let dsn = role(&server, "only_producing");
    run(
        &server,
        &format!("SELECT pubsub.grant_producer('{name}', 'only_producing')"),
    );
    let mut connection = Connection::open(&dsn).unwrap();
    let who: String = connection
        .client()
        .query_one("SELECT current_user::text", &[])
        .unwrap()
        .get(0);
    assert_eq!(who, "only_producing");
    for _ in 0..250 {
        let send = format!("SELECT pubsub.send('{name}', 'x')");
        connection.client().execute(&send, &[]).unwrap();
    }
    for named in [None, Some("job".to_owned())] {
        let options = ProducerOptions {
            name: named,
            batch_records: 30,
            ..ProducerOptions::default()
        };
        let producer = Producer::open(&dsn, &name, options).unwrap();
        for _ in 0..300 {
            producer.send(None, b"y").unwrap();
        }
        producer.flush().unwrap();
    }
    // A partition that comes later belongs to it as well.
    let changes = TopicChanges {
        partitions: Some(2),
        ..TopicChanges::default()
    };
    server.connect().alter_topic(&name, &changes).unwrap();
    let send = format!("SELECT pubsub.send('{name}', 'z', part => 1)");
    connection.client().execute(&send, &[]).unwrap();
    let read = format!("SELECT count(*) FROM pubsub.\"messages_{name}\"");
    let refused = connection.client().execute(&read, &[]).unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
    let other = small_ranges(&server);
    let send = format!("SELECT pubsub.send('{other}', 'x')");
    let refused = connection.client().execute(&send, &[]).unwrap_err();
    assert_eq!(
        refused.code().unwrap().code(),
        "42501",
        "it is another topic's producer"
    );
}

#[test]
fn a_consumer_that_is_not_the_owner_reads_ranges_that_were_made_later() {
    let server = Server::shared();
    let name = small_ranges(&server);
    let dsn = role(&server, "only_consuming");
    run(
        &server,
        &format!("SELECT pubsub.grant_consumer('{name}', 'only_consuming')"),
    );
    let producer = Producer::open(&server.dsn, &name, ProducerOptions::default()).unwrap();
    for _ in 0..500 {
        producer.send(None, b"x").unwrap();
        producer.flush().unwrap();
    }
    let mut consumer = Consumer::open(&dsn, &name, "g", ConsumerOptions::default()).unwrap();
    let mut read = 0;
    while read < 500 {
        read += consumer.poll(Duration::from_secs(5)).unwrap().len();
        consumer.commit().unwrap();
    }
    consumer.close().unwrap();
    let mut reader = Reader::open(&dsn, &name, &ConsumerOptions::default()).unwrap();
    let from = Position {
        partition: 0,
        offset: 400,
    };
    let read = reader.read(&[from], 1 << 20, Duration::from_secs(5));
    assert_eq!(read.unwrap()[0].offset, 400);
    let mut connection = Connection::open(&dsn).unwrap();
    for statement in [
        format!("SELECT pubsub.join_group('{name}', 'sql', 'm')"),
        format!("SELECT pubsub.poll('{name}', 'sql', 'm')"),
        format!("SELECT pubsub.commit('{name}', 'sql', 'm', 0, 1, 10)"),
        format!("SELECT pubsub.await_group('{name}', 'sql', 'm')"),
        format!("SELECT pubsub.leave_group('{name}', 'sql', 'm')"),
        format!("SELECT * FROM pubsub.\"messages_{name}\""),
        "SELECT * FROM pubsub.group_lags()".to_owned(),
    ] {
        connection.client().execute(&statement, &[]).unwrap();
    }
    let send = format!("SELECT pubsub.send('{name}', 'x')");
    let refused = connection.client().execute(&send, &[]).unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
}

#[test]
fn a_worker_that_is_not_the_owner_works_on_its_queue() {
    let server = Server::shared();
    let dsn = role(&server, "only_working");
    Queue::create(&mut server.connect(), "of-a-role", &QueueOptions::default()).unwrap();
    run(
        &server,
        "SELECT pubsub.grant_queue('of-a-role', 'only_working')",
    );
    let mut queue = Queue::open(&dsn, "of-a-role").unwrap();
    queue.send(&[b"a", b"b"], Duration::ZERO).unwrap();
    let claimed = queue.claim(2, None).unwrap();
    assert!(queue.acknowledge(&claimed[..1]).unwrap().is_empty());
    let mut connection = Connection::open(&dsn).unwrap();
    let (id, claim) = (claimed[1].message_id, claimed[1].claim);
    for statement in [
        format!("SELECT pubsub.queue_extend('of-a-role', ARRAY[{id}], ARRAY[{claim}], 1000)"),
        format!("SELECT pubsub.queue_nack('of-a-role', ARRAY[{id}], ARRAY[{claim}])"),
        "SELECT * FROM pubsub.queue_dead('of-a-role')".to_owned(),
        "SELECT pubsub.queue_redrive('of-a-role')".to_owned(),
        "SELECT * FROM pubsub.queue_stats('of-a-role')".to_owned(),
    ] {
        connection.client().execute(&statement, &[]).unwrap();
    }
}
