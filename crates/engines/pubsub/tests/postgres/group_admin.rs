//! Groups as a whole: where they may start, and setting, listing and dropping them.

use std::time::Duration;

use dyno_pubsub::{
    Connection, Consumer, ConsumerOptions, Producer, ProducerOptions, Reset, Start, TopicOptions,
};

use super::server::Server;

fn filled(server: &Server, records: usize) -> String {
    let (_, name) = server.topic(&TopicOptions::default());
    let producer = Producer::open(&server.dsn, &name, ProducerOptions::default()).unwrap();
    for _ in 0..records {
        producer.send(None, b"x").unwrap();
    }
    producer.flush().unwrap();
    name
}

fn starting(start: Start) -> ConsumerOptions {
    ConsumerOptions {
        start,
        ..ConsumerOptions::default()
    }
}

fn first_offset(consumer: &mut Consumer) -> i64 {
    consumer.poll(Duration::from_secs(10)).unwrap()[0].offset
}

fn to(place: Start, force: bool) -> Reset {
    Reset {
        to: place,
        partition: None,
        force,
    }
}

fn state(connection: &mut Connection, statement: &str) -> String {
    let error = connection.client().execute(statement, &[]).unwrap_err();
    error.code().unwrap().code().to_owned()
}

#[test]
fn a_group_cannot_begin_beyond_the_end() {
    let server = Server::shared();
    let name = filled(&server, 10);
    let opened = Consumer::open(&server.dsn, &name, "g", starting(Start::Offset(100)));
    let error = opened.err().unwrap();
    assert_eq!(error.code(), "offset-out-of-range");
    assert!(error.text().contains("is at 10"), "{error}");
    // Only a number that can be a time in microseconds comes with a hint that says how to write it.
    assert!(!error.text().contains("time:"), "{error}");
    let a_time = starting(Start::Offset(1_795_156_200_000_001));
    let error = Consumer::open(&server.dsn, &name, "g", a_time)
        .err()
        .unwrap();
    assert!(error.text().contains("time:1795156200000001"), "{error}");
    let mut connection = server.connect();
    assert_eq!(
        connection.groups(&name).unwrap(),
        [""; 0],
        "and was not made"
    );
    let join = format!("SELECT pubsub.join_group('{name}', 'g', 'm', start => 'offset:100')");
    assert_eq!(state(&mut connection, &join), "DP006");
    // The end itself is a place.
    Consumer::open(&server.dsn, &name, "g", starting(Start::Offset(10))).unwrap();
}

#[test]
fn a_group_that_stands_beyond_the_end_says_so_everywhere_and_can_be_set() {
    let server = Server::shared();
    let name = filled(&server, 10);
    let mut connection = server.connect();
    Consumer::open(&server.dsn, &name, "g", ConsumerOptions::default())
        .unwrap()
        .close()
        .unwrap();
    // As earlier versions made them.
    let broken = "UPDATE pubsub.assignments SET committed = 100, claimed_to = 100 WHERE group_id =
                  (pubsub.group_named($1, 'g')).group_id";
    connection.client().execute(broken, &[&name]).unwrap();
    let mut consumer = Consumer::open(&server.dsn, &name, "g", ConsumerOptions::default()).unwrap();
    let error = consumer.poll(Duration::from_secs(10)).unwrap_err();
    assert_eq!(error.code(), "offset-out-of-range");
    consumer.close().unwrap();
    let join = format!("SELECT pubsub.join_group('{name}', 'g', 'm')");
    connection.client().execute(&join, &[]).unwrap();
    let poll = format!("SELECT pubsub.poll('{name}', 'g', 'm')");
    assert_eq!(state(&mut connection, &poll), "DP006");
    let leave = format!("SELECT pubsub.leave_group('{name}', 'g', 'm')");
    connection.client().execute(&leave, &[]).unwrap();
    let moved = connection
        .reset_group(&name, "g", &to(Start::Offset(4), false))
        .unwrap();
    assert_eq!((moved[0].was, moved[0].committed), (Some(100), 4));
    let mut consumer = Consumer::open(&server.dsn, &name, "g", ConsumerOptions::default()).unwrap();
    assert_eq!(first_offset(&mut consumer), 4);
}

#[test]
fn a_group_with_living_members_is_set_and_dropped_by_force_alone() {
    let server = Server::shared();
    let name = filled(&server, 20);
    let mut connection = server.connect();
    let options = ConsumerOptions {
        lease: Duration::from_millis(900),
        ..ConsumerOptions::default()
    };
    let mut consumer = Consumer::open(&server.dsn, &name, "g", options).unwrap();
    assert_eq!(first_offset(&mut consumer), 0);
    let refused = connection.reset_group(&name, "g", &to(Start::Earliest, false));
    assert_eq!(refused.unwrap_err().code(), "group-in-use");
    assert_eq!(
        connection.drop_group(&name, "g", false).unwrap_err().code(),
        "group-in-use"
    );
    let moved = connection
        .reset_group(&name, "g", &to(Start::Offset(7), true))
        .unwrap();
    assert_eq!(moved[0].committed, 7);
    // What was handed out before is not the member's any more, and it goes on from the new place.
    assert_eq!(consumer.commit().unwrap_err().code(), "wrong-generation");
    let mut next = Vec::new();
    while next.is_empty() {
        next = consumer.poll(Duration::from_secs(5)).unwrap();
    }
    assert_eq!(next[0].offset, 7);
    connection.drop_group(&name, "g", true).unwrap();
    assert_eq!(connection.groups(&name).unwrap(), [""; 0]);
    assert_eq!(
        connection.drop_group(&name, "g", true).unwrap_err().code(),
        "unknown-group"
    );
}

#[test]
fn a_place_is_an_end_a_time_or_an_offset_of_one_partition() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions {
        partitions: 2,
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    for part in 0..2 {
        let send = format!(
            "SELECT pubsub.send_batch('{name}', array_fill('x'::bytea, ARRAY[10]), part => {part})"
        );
        connection.client().execute(&send, &[]).unwrap();
    }
    Consumer::open(&server.dsn, &name, "g", ConsumerOptions::default())
        .unwrap()
        .close()
        .unwrap();
    let mut set = |start: Start, partition: Option<i32>| {
        let reset = Reset {
            to: start,
            partition,
            force: false,
        };
        let moved = connection.reset_group(&name, "g", &reset);
        moved
            .map(|moved| {
                moved
                    .iter()
                    .map(|m| (m.partition, m.committed))
                    .collect::<Vec<_>>()
            })
            .map_err(|error| error.code())
    };
    assert_eq!(set(Start::Latest, None), Ok(vec![(0, 10), (1, 10)]));
    assert_eq!(set(Start::Earliest, Some(1)), Ok(vec![(1, 0)]));
    assert_eq!(set(Start::TimeUs(0), None), Ok(vec![(0, 0), (1, 0)]));
    assert_eq!(set(Start::Offset(3), Some(0)), Ok(vec![(0, 3)]));
    assert_eq!(set(Start::Offset(11), Some(0)), Err("offset-out-of-range"));
    assert_eq!(set(Start::Earliest, Some(2)), Err("unknown-topic"));
    let lags = connection.group_lags().unwrap();
    let (_, of_all) = lags.iter().find(|(topic, _)| *topic == name).unwrap();
    assert_eq!((of_all.group.as_str(), of_all.lag()), ("g", 17));
    assert_eq!(of_all.partitions, connection.group_lag(&name, "g").unwrap());
}

#[test]
fn of_two_commits_the_further_one_counts() {
    let server = Server::shared();
    let name = filled(&server, 20);
    let mut connection = server.connect();
    for statement in [
        format!("SELECT pubsub.join_group('{name}', 'g', 'm')"),
        format!("SELECT pubsub.poll('{name}', 'g', 'm')"),
        format!("SELECT pubsub.commit('{name}', 'g', 'm', 0, 1, 10)"),
        format!("SELECT pubsub.commit('{name}', 'g', 'm', 0, 1, 3)"),
    ] {
        connection.client().execute(&statement, &[]).unwrap();
    }
    assert_eq!(connection.group_lag(&name, "g").unwrap()[0].committed, 10);
}

#[test]
fn a_group_begins_at_the_first_record_unless_told_otherwise() {
    let server = Server::shared();
    let name = filled(&server, 3);
    let mut consumer =
        Consumer::open(&server.dsn, &name, "library", ConsumerOptions::default()).unwrap();
    assert_eq!(first_offset(&mut consumer), 0);
    let mut connection = server.connect();
    let join = format!("SELECT pubsub.join_group('{name}', 'sql', 'm')");
    connection.client().execute(&join, &[]).unwrap();
    assert_eq!(connection.group_lag(&name, "sql").unwrap()[0].committed, 0);
}

#[test]
fn a_member_asks_to_be_told_of_what_comes_next() {
    let server = Server::shared();
    let name = filled(&server, 3);
    let mut connection = server.connect();
    let mut ask = |statement: &str| -> Vec<bool> {
        let rows = connection.client().query(statement, &[]).unwrap();
        rows.iter()
            .map(|row| row.try_get(0).unwrap_or(false))
            .collect()
    };
    let wait = format!("SELECT pubsub.await_group('{name}', 'g', 'm')");
    ask(&format!(
        "SELECT pubsub.join_group('{name}', 'g', 'm') IS NOT NULL"
    ));
    assert_eq!(ask(&wait), [false], "there is something to poll");
    ask(&format!(
        "SELECT message_offset IS NULL FROM pubsub.poll('{name}', 'g', 'm')"
    ));
    assert_eq!(ask(&wait), [true]);
    let channels = ask("SELECT true FROM pg_listening_channels()");
    assert_eq!(channels.len(), 1);
}
