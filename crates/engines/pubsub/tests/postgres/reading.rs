use std::time::Duration;

use dyno_postgres::postgres::Client;
use dyno_postgres::postgres::fallible_iterator::FallibleIterator;
use dyno_pubsub::record::{self, Batch, Codec, Run};
use dyno_pubsub::{
    Connection, ConsumerOptions, Position, Producer, ProducerOptions, Reader, Start, TopicOptions,
};

use super::server::Server;
use super::{base, batch, read_all, unpack};

const RUN: Run = Run {
    producer_id: 0,
    first_sequence: 0,
};

#[test]
fn rows_fill_pages_and_ranges_are_crossed() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions {
        range_records: 100,
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    let value = vec![b'x'; 1024];
    let values: Vec<&[u8]> = vec![&value; 333];
    base(
        connection
            .append(topic_id, 0, 0, &mut batch(0, 0, &values))
            .unwrap(),
    );
    let fetched = connection.fetch(topic_id, 0, 0, 1 << 20).unwrap();
    assert!(fetched.rows[..10].iter().all(|row| row.count == 7));
    // From every offset, the first row holds it.
    for from in [0, 1, 6, 7, 99, 100, 101, 104, 105, 199, 200, 332] {
        let fetched = connection.fetch(topic_id, 0, from, 4096).unwrap();
        let row = &fetched.rows[0];
        assert!(
            row.base_offset <= from && from < row.base_offset + i64::from(row.count),
            "{from}"
        );
        assert_eq!(
            read_all(&mut connection, topic_id, 0, from).len(),
            333 - from as usize
        );
    }
    let toasted: i64 = connection
        .client()
        .query_one(
            "SELECT coalesce(sum(pg_relation_size(reltoastrelid)), 0)::bigint FROM pg_class WHERE relname LIKE $1 AND reltoastrelid <> 0",
            &[&format!("log_{topic_id}_0_%")],
        )
        .unwrap()
        .get(0);
    assert_eq!(toasted, 0, "rows that fit a page are not taken out of it");
}

#[test]
fn the_end_is_empty_and_beyond_it_is_an_error() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    assert!(
        connection
            .fetch(topic_id, 0, 0, 1000)
            .unwrap()
            .rows
            .is_empty()
    );
    base(
        connection
            .append(topic_id, 0, 0, &mut batch(0, 0, &[b"a"]))
            .unwrap(),
    );
    assert_eq!(
        connection.fetch(topic_id, 0, 0, 1000).unwrap().next_offset,
        1
    );
    assert!(
        connection
            .fetch(topic_id, 0, 1, 1000)
            .unwrap()
            .rows
            .is_empty()
    );
    base(
        connection
            .append(topic_id, 0, 0, &mut batch(0, 0, &[b"a"]))
            .unwrap(),
    );
    assert_eq!(
        connection.fetch(topic_id, 0, 1, 1000).unwrap().next_offset,
        2
    );
    for offset in [3, -1] {
        assert_eq!(
            connection
                .fetch(topic_id, 0, offset, 1000)
                .unwrap_err()
                .code(),
            "offset-out-of-range"
        );
    }
    assert_eq!(
        connection.fetch(topic_id, 7, 0, 1000).unwrap_err().code(),
        "unknown-topic"
    );
}

#[test]
fn compressed_rows_come_back() {
    let server = Server::shared();
    for codec in [Codec::Lz4, Codec::Zstd] {
        let (topic_id, _) = server.topic(&TopicOptions::default());
        let mut connection = server.connect();
        let mut body = Vec::new();
        for i in 0..20_000 {
            record::encode(
                &mut body,
                i,
                Some(b"key"),
                &[],
                format!("value number {i}").as_bytes(),
            )
            .unwrap();
        }
        let mut batch = Batch::new();
        assert_eq!(batch.push_compressing(RUN, codec, &body).unwrap(), 20_000);
        assert!(
            batch
                .bodies()
                .all(|body| body.len() <= record::PAGE_BODY_BYTES)
        );
        base(connection.append(topic_id, 0, 0, &mut batch).unwrap());
        let read = read_all(&mut connection, topic_id, 0, 0);
        assert_eq!(read.len(), 20_000);
        assert_eq!(read[19_999].1.value, "value number 19999");
        // As it is stored, it can be appended again as it is.
        let stored = connection.fetch(topic_id, 0, 0, 1).unwrap().rows.remove(0);
        let mut again = Batch::new();
        let count = again
            .push_compressed(RUN, codec, stored.body.clone())
            .unwrap();
        assert_eq!(count, i64::from(stored.count));
        assert_eq!(
            base(connection.append(topic_id, 0, 0, &mut again).unwrap()),
            20_000
        );
        let last = connection
            .fetch(topic_id, 0, 20_000, 1)
            .unwrap()
            .rows
            .remove(0);
        assert_eq!(unpack(&last).len(), stored.count as usize);
    }
}

#[test]
fn a_time_leads_to_the_first_row_from_then_on() {
    let server = Server::shared();
    let (topic_id, name) = server.topic(&TopicOptions {
        range_records: 100,
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    for _ in 0..60 {
        base(
            connection
                .append(topic_id, 0, 0, &mut batch(0, 0, &[b"a", b"b", b"c"]))
                .unwrap(),
        );
    }
    let rows = connection.fetch(topic_id, 0, 0, 1 << 20).unwrap().rows;
    for row in &rows {
        let offset = connection
            .offset_of(&name, 0, Start::TimeUs(row.appended_at_us))
            .unwrap();
        let first_then = rows
            .iter()
            .find(|r| r.appended_at_us >= row.appended_at_us)
            .unwrap();
        assert_eq!(offset, first_then.base_offset);
    }
    assert_eq!(connection.offset_of(&name, 0, Start::TimeUs(0)).unwrap(), 0);
    assert_eq!(
        connection
            .offset_of(&name, 0, Start::TimeUs(i64::MAX / 1000))
            .unwrap(),
        180
    );
    assert_eq!(connection.offset_of(&name, 0, Start::Latest).unwrap(), 180);
    assert_eq!(
        connection
            .offset_of("none", 0, Start::Latest)
            .unwrap_err()
            .code(),
        "unknown-topic"
    );
}

#[test]
fn damage_is_found() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    base(
        connection
            .append(topic_id, 0, 0, &mut batch(0, 0, &[b"abc"]))
            .unwrap(),
    );
    let spoil = format!("UPDATE pubsub.log_{topic_id}_0 SET body = set_byte(body, 20, 0)");
    connection.client().execute(&spoil, &[]).unwrap();
    let row = connection
        .fetch(topic_id, 0, 0, 1000)
        .unwrap()
        .rows
        .remove(0);
    let error = row.records().unwrap_err();
    assert_eq!(error.code(), "damaged");
    assert!(error.text().contains("offset 0"), "{error}");
}

#[test]
fn a_plan_that_was_made_for_an_empty_table_goes_by_the_index() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    for _ in 0..8 {
        connection.fetch(topic_id, 0, 0, 1 << 20).unwrap();
    }
    let made = plan_of(&mut connection, "LIMIT $2", "0, 130");
    assert_eq!(made.0, 8);
    assert_eq!(made.1.matches("Index Scan").count(), 1, "{}", made.1);
    // A row that is longer than a page is read by the other statement.
    let mut long = batch(0, 0, &[&[0; 20_000]]);
    base(connection.append(topic_id, 0, 0, &mut long).unwrap());
    let fetched = connection.fetch(topic_id, 0, 0, 1 << 20).unwrap();
    assert_eq!(fetched.rows.len(), 1);
    let made = plan_of(&mut connection, "LIMIT $3", "0, 1000000, 130");
    assert_eq!(made.0, 1);
    assert_eq!(made.1.matches("Index Scan").count(), 2, "{}", made.1);
}

/// How often the session's statement that ends so was run by its general plan, and that plan.
fn plan_of(connection: &mut Connection, ends: &str, parameters: &str) -> (i64, String) {
    let ask = "SELECT statement, generic_plans FROM pg_prepared_statements WHERE statement LIKE '%' || $1";
    let row = connection.client().query_one(ask, &[&ends]).unwrap();
    let types = vec!["bigint"; parameters.split(',').count()].join(", ");
    let prepare = format!("PREPARE again ({types}) AS {}", row.get::<_, &str>(0));
    connection.client().batch_execute(&prepare).unwrap();
    let explain = format!("EXPLAIN EXECUTE again ({parameters})");
    let plan = connection.client().query(&explain, &[]).unwrap();
    connection
        .client()
        .batch_execute("DEALLOCATE again")
        .unwrap();
    let plan: Vec<&str> = plan.iter().map(|line| line.get(0)).collect();
    let plan = plan.join("\n");
    assert!(
        !plan.contains("Sort") && !plan.contains("Seq Scan"),
        "{plan}"
    );
    (row.get(1), plan)
}

/// Rows that fit a page are read by one statement, longer ones by another; which it is follows the
/// rows.
#[test]
fn rows_of_all_lengths_come_in_order_and_within_the_bound() {
    const BOUND: usize = 100_000;
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let lengths = [1000, 40_000, 90_000, 10, 10, 300_000, 1000, 9_000];
    for (nth, length) in lengths.iter().cycle().take(80).enumerate() {
        let value = vec![nth as u8; *length];
        base(
            connection
                .append(topic_id, 0, 0, &mut batch(0, 0, &[&value[..]]))
                .unwrap(),
        );
    }
    let mut seen = Vec::new();
    let mut at = 0;
    while at < 80 {
        let fetched = connection.fetch(topic_id, 0, at, BOUND).unwrap();
        let bytes: usize = fetched.rows.iter().map(|row| row.body.len()).sum();
        assert!(bytes <= BOUND || fetched.rows.len() == 1, "{bytes} at {at}");
        assert!(!fetched.rows.is_empty(), "nothing at {at}");
        for row in &fetched.rows {
            for record in row.records().unwrap() {
                let value = record.unwrap().value;
                seen.push((value[0], value.len()));
            }
        }
        at = fetched.next_offset;
    }
    let sent = lengths.iter().cycle().take(80);
    let sent: Vec<(u8, usize)> = sent.enumerate().map(|(n, l)| (n as u8, *l)).collect();
    assert_eq!(seen, sent);
}

#[test]
fn who_waits_at_the_end_is_told_of_the_next_append() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let (mut connection, mut waiting) = (server.connect(), server.connect());
    let waiting = waiting.client();
    let ask = "SELECT pubsub.await($1, 0, $2)";
    let awaits = |client: &mut Client, offset: i64| -> bool {
        let answer = client.query_one(ask, &[&topic_id, &offset]);
        answer.unwrap().get(0)
    };
    assert!(awaits(waiting, 0), "the log is empty");
    assert!(awaits(waiting, 0), "two wait as well as one");
    let mut append = || {
        base(
            connection
                .append(topic_id, 0, 0, &mut batch(0, 0, &[b"x"]))
                .unwrap(),
        )
    };
    append();
    assert!(!awaits(waiting, 0), "there is a record already");
    waiting
        .batch_execute(&format!("LISTEN pubsub_{topic_id}_0"))
        .unwrap();
    // Nobody waits at offset 1.
    append();
    assert!(awaits(waiting, 2));
    let mut notifications = waiting.notifications();
    assert!(
        notifications.iter().next().unwrap().is_none(),
        "not told of 1"
    );
    append();
    let wait = std::time::Duration::from_secs(60);
    let notification = notifications.timeout_iter(wait).next().unwrap();
    assert_eq!(
        notification.unwrap().channel(),
        format!("pubsub_{topic_id}_0")
    );
}

#[test]
fn a_reader_without_a_group_reads_by_offset_and_says_how_far_partitions_reach() {
    let server = Server::shared();
    let (_, name) = server.topic(&TopicOptions {
        partitions: 2,
        ..TopicOptions::default()
    });
    let producer = Producer::open(&server.dsn, &name, ProducerOptions::default()).unwrap();
    for n in 0..1000_u32 {
        let partition = Some(n % 2);
        producer
            .send_with(None, &n.to_be_bytes(), &[], partition)
            .unwrap();
    }
    producer.flush().unwrap();
    let mut reader = Reader::open(&server.dsn, &name, &ConsumerOptions::default()).unwrap();
    let ends: Vec<_> = reader.ends().unwrap();
    assert!(
        ends.iter()
            .all(|is| (is.first_offset, is.next_offset) == (0, 500))
    );
    let at = |partition, offset| Position { partition, offset };
    let mut next = [490, 7];
    while next != [500, 500] {
        let positions = [at(0, next[0]), at(1, next[1])];
        for message in reader
            .read(&positions, 1 << 10, Duration::from_secs(5))
            .unwrap()
        {
            let at = &mut next[message.partition as usize];
            assert_eq!(message.offset, *at);
            let value = u32::from_be_bytes(message.value[..].try_into().unwrap());
            assert_eq!(
                i64::from(value),
                2 * message.offset + i64::from(message.partition)
            );
            *at += 1;
        }
    }
    let beyond = reader.read(&[at(0, 501)], 1 << 10, Duration::ZERO);
    assert_eq!(beyond.unwrap_err().error.code(), "offset-out-of-range");
    assert!(server.connect().group_states(&name).unwrap().is_empty());
}
