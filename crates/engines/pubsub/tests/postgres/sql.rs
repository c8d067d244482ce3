use dyno_pubsub::record::{self, Batch, Run};
use dyno_pubsub::{Partitioner, TopicOptions};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::server::Server;
use super::{base, read_all};

#[test]
fn keys_belong_to_the_same_partitions_in_sql() {
    let server = Server::shared();
    let mut connection = server.connect();
    let query = "SELECT pubsub.key_partition($1, $2), pubsub.murmur2_partition($1, $2)";
    let query = connection.client().prepare(query).unwrap();
    let connection = std::cell::RefCell::new(connection);
    let mut runner = TestRunner::new(Config::with_cases(200));
    let cases = (prop::collection::vec(any::<u8>(), 0..40), 1_i32..1_000_000);
    runner
        .run(&cases, |(key, partitions)| {
            let mut connection = connection.borrow_mut();
            let row = connection
                .client()
                .query_one(&query, &[&key, &partitions])
                .unwrap();
            for (at, ours) in [Partitioner::Fnv1a, Partitioner::Murmur2]
                .iter()
                .enumerate()
            {
                let ours = ours.partition_of(&key, partitions.unsigned_abs());
                prop_assert_eq!(row.get::<_, i32>(at).unsigned_abs(), ours);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn what_sql_sends_the_library_reads() {
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let send = "SELECT message_offset FROM pubsub.send($1, $2, $3, '{\"b\": [\"1\", null], \"a\": \"x\"}')";
    let sent = connection
        .client()
        .query_one(send, &[&name, &&b"value"[..], &Some(&b"key"[..])])
        .unwrap();
    assert_eq!(sent.get::<_, i64>(0), 0);
    let large = vec![vec![1_u8; 3000]; 7];
    let batch = "SELECT first_offset, records FROM pubsub.send_batch($1, $2)";
    let sent = connection
        .client()
        .query_one(batch, &[&name, &large])
        .unwrap();
    assert_eq!((sent.get::<_, i64>(0), sent.get::<_, i32>(1)), (1, 7));
    let read = read_all(&mut connection, topic_id, 0, 0);
    let first = &read[0].1;
    assert_eq!(
        (&first.key.as_ref().unwrap()[..], &first.value[..]),
        (&b"key"[..], &b"value"[..])
    );
    let headers: Vec<(&str, Option<&[u8]>)> = first
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_deref()))
        .collect();
    assert_eq!(
        headers,
        [("a", Some(&b"x"[..])), ("b", Some(b"1")), ("b", None)]
    );
    assert!(read[1..].iter().all(|(_, record)| record.value == large[0]));
    let rows = connection.fetch(topic_id, 0, 1, 1 << 20).unwrap().rows;
    assert_eq!(
        rows.iter().map(|row| row.count).collect::<Vec<_>>(),
        [2, 2, 2, 1]
    );
}

#[test]
fn the_view_shows_what_the_library_wrote() {
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions {
        partitions: 2,
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    for partition in 0..2 {
        let mut body = Vec::new();
        for i in 0..50_i64 {
            let value = vec![b'a'; (i * 37 % 1500) as usize];
            let key = format!("key {i}");
            let bytes = [0xff, 0x00];
            let headers: [(&str, Option<&[u8]>); 2] =
                [("text", Some(b"t")), ("bytes", Some(&bytes))];
            let headers = if i % 2 == 0 { &headers[..] } else { &[] };
            record::encode(
                &mut body,
                i * 1_000_001,
                (i % 3 > 0).then_some(key.as_bytes()),
                headers,
                &value,
            )
            .unwrap();
        }
        let mut batch = Batch::new();
        let run = Run {
            producer_id: 0,
            first_sequence: 0,
        };
        batch.push(run, &body).unwrap();
        base(
            connection
                .append(topic_id, partition, 0, &mut batch)
                .unwrap(),
        );
    }
    let view = format!(
        "SELECT message_offset, (extract(epoch FROM time) * 1000000)::bigint, key, headers::text, value \
         FROM pubsub.\"messages_{name}\" WHERE partition = 1 ORDER BY message_offset"
    );
    let seen = connection.client().query(&view, &[]).unwrap();
    let read = read_all(&mut connection, topic_id, 1, 0);
    assert_eq!(seen.len(), 50);
    for (row, (offset, record)) in seen.iter().zip(&read) {
        assert_eq!(
            (row.get::<_, i64>(0), row.get::<_, i64>(1)),
            (*offset, record.time_us)
        );
        assert_eq!(row.get::<_, Option<&[u8]>>(2), record.key.as_deref());
        assert_eq!(row.get::<_, &[u8]>(4), &record.value[..]);
        let headers: Option<String> = row.get(3);
        assert_eq!(headers.is_some(), !record.headers.is_empty());
        if let Some(headers) = headers {
            assert_eq!(headers, r#"{"text": "t", "bytes": {"base64": "/wA="}}"#);
        }
    }
    let some = "SELECT count(*), min(message_offset) FROM pubsub.messages($1, 0, 17, 23)";
    let row = connection.client().query_one(some, &[&name]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (6, 17));
}

/// A batch of a producer that was not given its id.
fn unknown_producer(topic: &str, id: i64) -> String {
    format!(
        "SELECT pubsub.send_batch('{topic}', ARRAY['x']::bytea[], part => 0, producer => {id}, first_sequence => 0)"
    )
}

#[test]
fn what_is_wrong_with_a_name_or_a_setting_is_said_in_words() {
    let server = Server::shared();
    let mut connection = server.connect();
    for (statement, said) in [
        (
            "SELECT pubsub.create_topic('a b')",
            "1 to 100 of the characters",
        ),
        (
            "SELECT pubsub.create_topic(NULL)",
            "NULL cannot be the name of a topic",
        ),
        (
            "SELECT pubsub.create_topic('words', partitions => 0)",
            "0 partitions are not within 1 and 1000",
        ),
        (
            "SELECT pubsub.create_topic('words', range_records => 5)",
            "must be 100 at least",
        ),
        (
            "SELECT pubsub.create_topic('words', retention_ms => 0)",
            "retention_ms is 0",
        ),
        (
            "SELECT pubsub.create_topic('words', compression => 'gzip')",
            "is not one of none, lz4, zstd",
        ),
        (
            "SELECT pubsub.create_topic('words', partitioner => 'crc32')",
            "partitioner 'crc32' is not one of fnv1a, murmur2",
        ),
        (
            "SELECT pubsub.create_queue('a b')",
            "cannot be the name of a queue",
        ),
    ] {
        let error = connection.client().execute(statement, &[]).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "DP011", "{statement}");
        assert!(error.message().contains(said), "{statement}: {error}");
    }
}

#[test]
fn what_is_wrong_with_a_group_a_member_or_a_queue_is_said_in_words() {
    let server = Server::shared();
    let (_, topic) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let long = "x".repeat(201);
    let join = |arguments: &str| format!("join_group('{topic}', {arguments})");
    for (call, said) in [
        (
            join("'a b', 'm'"),
            "'a b' cannot be the name of a group: it is 1 to 100 of the characters",
        ),
        (
            join("'g', ''"),
            "'' cannot be the name of a member: it is 1 to 200 characters",
        ),
        (
            join("'g', NULL"),
            "NULL cannot be the name of a member: it is 1 to 200 characters",
        ),
        (
            join(&format!("'g', '{long}'")),
            "x' cannot be the name of a member: it is 1 to 200 characters",
        ),
        (
            join("'g', 'm', when_lost => 'stop'"),
            "when_lost 'stop' is not one of skip, fail",
        ),
        (
            "create_queue('q', visibility_ms => 0)".to_owned(),
            "visibility_ms is 0, and must be above 0",
        ),
        (
            "create_queue('q', max_attempts => NULL)".to_owned(),
            "max_attempts is null, and must be above 0",
        ),
        (
            "create_queue('q', keep_done => NULL)".to_owned(),
            "keep_done is null, and must be true or false",
        ),
        (
            "queue_send('q', 'x', delay_ms => -5)".to_owned(),
            "delay_ms is -5, and must be 0 or more",
        ),
        ("queue_send('q', NULL)".to_owned(), "a payload is null"),
    ] {
        let statement = format!("SELECT pubsub.{call}");
        let error = connection.client().execute(&statement, &[]).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "DP011", "{statement}");
        assert!(error.message().contains(said), "{statement}: {error}");
    }
}

#[test]
fn an_offset_beyond_the_end_is_taken_for_a_time_only_where_it_can_be_one() {
    let server = Server::shared();
    let (_, topic) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let mut hint = |offset: i64| {
        let statement = format!("SELECT pubsub.offset_of_start('{topic}', 0, 'offset:{offset}')");
        let error = connection.client().execute(&statement, &[]).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "DP006", "{error}");
        error.hint().map(str::to_owned)
    };
    assert_eq!(hint(100), None);
    let time = hint(1_700_000_000_000_000);
    let written = "A time in microseconds is written time:1700000000000000.";
    assert_eq!(time.as_deref(), Some(written));
}

#[test]
fn headers_come_back_as_they_were_given() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let headers =
        r#"{"bytes": {"base64": "/wA="}, "none": null, "text": "t", "twice": ["a", "b"]}"#;
    let send = format!("SELECT pubsub.send('{name}', 'x', headers => '{headers}')");
    connection.client().execute(&send, &[]).unwrap();
    let read = format!("SELECT headers = '{headers}' FROM pubsub.messages('{name}', 0, 0, 1)");
    assert!(
        connection
            .client()
            .query_one(&read, &[])
            .unwrap()
            .get::<_, bool>(0)
    );
}

/// A record that SQL could not read would keep it from all that lie behind it.
#[test]
fn no_record_keeps_sql_from_those_behind_it() {
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let mut body = Vec::new();
    for time_us in [i64::MAX, i64::MIN, 0] {
        let headers = [("a\0b", Some(&b"y"[..]))];
        record::encode(&mut body, time_us, None, &headers, b"x").unwrap();
    }
    let mut batch = Batch::new();
    let run = Run {
        producer_id: 0,
        first_sequence: 0,
    };
    batch.push(run, &body).unwrap();
    connection.append(topic_id, 0, 0, &mut batch).unwrap();
    let read = "SELECT \"time\"::text, headers::text FROM pubsub.messages($1, 0, 0, 10)";
    let rows = connection.client().query(read, &[&name]).unwrap();
    let times: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(times[..2], ["infinity", "-infinity"]);
    assert!(times[2].starts_with("1970-01-01"), "{times:?}");
    assert_eq!(rows[0].get::<_, &str>(1), r#"{"a\\000b": "y"}"#);
}

#[test]
fn to_wait_beyond_the_end_is_refused() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let mut waits = |offset: i64| {
        let row = connection
            .client()
            .query_one("SELECT pubsub.await($1, 0, $2)", &[&topic_id, &offset]);
        row.map(|row| row.get::<_, bool>(0))
            .map_err(|error| error.code().unwrap().code().to_owned())
    };
    assert_eq!(waits(0), Ok(true));
    assert_eq!(waits(1), Err("DP006".to_owned()));
}

#[test]
fn sql_has_our_error_codes() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    for (state, statement) in [
        ("DP001", "SELECT pubsub.send('none', 'x')".to_owned()),
        ("DP001", "SELECT pubsub.await(2147483647, 0, 0)".to_owned()),
        (
            "DP001",
            format!("SELECT pubsub.send('{name}', 'x', part => 1)"),
        ),
        (
            "DP002",
            format!("SELECT pubsub.send('{name}', decode(repeat('00', 8388608), 'hex'))"),
        ),
        (
            "DP005",
            format!(
                "SELECT pubsub.send_batch('{name}', ARRAY['x']::bytea[], part => 0, producer => 5, first_sequence => 1)"
            ),
        ),
        (
            "DP008",
            format!("SELECT pubsub.poll('{name}', 'none', 'm')"),
        ),
        ("DP010", format!("SELECT pubsub.create_topic('{name}')")),
        ("DP011", "SELECT pubsub.create_topic('a b')".to_owned()),
        ("DP011", format!("SELECT pubsub.send('{name}', NULL)")),
        (
            "DP011",
            format!("SELECT pubsub.send('{name}', 'x', headers => '{{\"n\": 5}}')"),
        ),
        (
            "DP011",
            format!("SELECT pubsub.send('{name}', 'x', headers => '{{\"n\": true}}')"),
        ),
        (
            "DP011",
            format!("SELECT pubsub.send('{name}', 'x', headers => '{{\"n\": {{}}}}')"),
        ),
        (
            "DP011",
            format!("SELECT pubsub.send('{name}', 'x', headers => '{{\"n\": []}}')"),
        ),
        (
            "DP011",
            format!("SELECT pubsub.send('{name}', 'x', headers => '{{\"n\": [[\"a\"]]}}')"),
        ),
        ("DP011", unknown_producer(&name, 0)),
        // Negative ids stand for the names of producers.
        ("DP011", unknown_producer(&name, -5)),
        ("DP011", unknown_producer(&name, 999_999)),
        ("DP012", "SELECT pubsub.queue_claim('none')".to_owned()),
    ] {
        let error = connection.client().execute(&statement, &[]).unwrap_err();
        assert_eq!(
            error.code().map(|code| code.code()),
            Some(state),
            "{statement}: {error:?}"
        );
    }
}
