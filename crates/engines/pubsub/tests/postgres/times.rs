//! Finding records by the time at which their producers made them.

use dyno_pubsub::record::{self, Batch, PAGE_BODY_BYTES, Run};
use dyno_pubsub::{Connection, TopicOptions};
use proptest::prelude::*;

use super::base;
use super::server::Server;

/// A row as this test knows it.
#[derive(Debug, Clone, Copy)]
struct Row {
    base: i64,
    count: i64,
    latest: i64,
}

#[derive(Debug, Clone)]
enum Step {
    /// One append: rows of so many records, each with the time of its latest record.
    Append(Vec<(i64, i64)>),
    /// The records before this share of the offsets are deleted, a hundredth each.
    Delete(i64),
    CloseRange,
}

/// What a record takes beside its value.
const RECORD_HEAD_BYTES: usize = 18;

/// Appends rows, each of which its records fill, so that none of the next row fits into it.
fn append(connection: &mut Connection, topic_id: i32, rows: &[(i64, i64)]) -> Vec<Row> {
    let mut batch = Batch::new();
    for (count, latest) in rows {
        let bytes = PAGE_BODY_BYTES / *count as usize - RECORD_HEAD_BYTES;
        let mut body = Vec::new();
        for at in 0..*count {
            // The latest one is in the middle, and the others are as early as can be.
            let time_us = if at == count / 2 { *latest } else { 0 };
            record::encode(&mut body, time_us, None, &[], &vec![b'x'; bytes]).unwrap();
        }
        let run = Run {
            producer_id: 0,
            first_sequence: 0,
        };
        batch.push(run, &body).unwrap();
    }
    assert_eq!(batch.rows(), rows.len());
    let mut next = base(connection.append(topic_id, 0, 0, &mut batch).unwrap());
    let made = rows.iter().map(|(count, latest)| {
        let base = next;
        next += count;
        Row {
            base,
            count: *count,
            latest: *latest,
        }
    });
    made.collect()
}

fn row_from_time(
    connection: &mut Connection,
    topic_id: i32,
    time_us: i64,
    from: i64,
) -> Option<i64> {
    let query = "SELECT pubsub.row_from_time($1, 0, $2, $3)";
    let row = connection
        .client()
        .query_one(query, &[&topic_id, &time_us, &from]);
    row.unwrap().get(0)
}

/// The slow way, which is obviously right.
fn slowly(rows: &[Row], time_us: i64, lowest: i64) -> Option<i64> {
    let found = rows
        .iter()
        .find(|row| row.base + row.count > lowest && row.latest >= time_us);
    found.map(|row| row.base.max(lowest))
}

fn first_offset(connection: &mut Connection, topic_id: i32) -> i64 {
    connection.partitions(topic_id).unwrap()[0].first_offset
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rows = prop::collection::vec((1..60_i64, 1..40_i64), 1..4);
    let step = prop_oneof![
        8 => rows.prop_map(Step::Append),
        1 => (0..100_i64).prop_map(Step::Delete),
        1 => Just(Step::CloseRange),
    ];
    prop::collection::vec(step, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_time_is_found_where_reading_all_rows_finds_it(steps in steps(), outlier in 0..25_usize) {
        let server = Server::shared();
        let (topic_id, name) = server.topic(&TopicOptions {
            range_records: 100,
            ..TopicOptions::default()
        });
        let mut connection = server.connect();
        let mut rows = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Append(given) => {
                    // One clock is far ahead.
                    let late = if at == outlier { 1_000 } else { 0 };
                    let given: Vec<_> = given.iter().map(|(count, time)| (*count, time + late)).collect();
                    rows.extend(append(&mut connection, topic_id, &given));
                }
                Step::Delete(hundredths) => {
                    let end = rows.last().map_or(0, |row: &Row| row.base + row.count);
                    let query = "SELECT pubsub.delete_records($1, 0, $2)";
                    connection.client().execute(query, &[&name, &(end * hundredths / 100)]).unwrap();
                }
                Step::CloseRange => {
                    let query = "SELECT pubsub.close_range($1, 0)";
                    connection.client().execute(query, &[&topic_id]).unwrap();
                }
            }
        }
        let first = first_offset(&mut connection, topic_id);
        let end = rows.last().map_or(0, |row| row.base + row.count);
        for from in [0, (first + end) / 2, end - 1] {
            for time_us in (0..42).step_by(3).chain([1_001, 1_020, 1_040]) {
                let found = row_from_time(&mut connection, topic_id, time_us, from);
                prop_assert_eq!(found, slowly(&rows, time_us, from.max(first)), "{} from {}", time_us, from);
            }
        }
    }
}

/// A search once read every row before the one that it found.
#[test]
fn a_time_is_found_in_few_rows_however_many_there_are() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions {
        range_records: 700,
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    for at in 0..20 {
        let rows: Vec<_> = (0..100).map(|n| (1, at * 100 + n)).collect();
        append(&mut connection, topic_id, &rows);
    }
    for time_us in [0, 1, 700, 1_234, 1_999, 2_000] {
        let mut transaction = connection.client().transaction().unwrap();
        let query = "SELECT pubsub.row_from_time($1, 0, $2, 0)";
        let found: Option<i64> = transaction
            .query_one(query, &[&topic_id, &time_us])
            .unwrap()
            .get(0);
        assert_eq!(found, (time_us < 2_000).then_some(time_us));
        let query = "SELECT sum(seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_xact_user_tables \
                      WHERE relname LIKE $1";
        let read: i64 = transaction
            .query_one(query, &[&format!("log\\_{topic_id}\\_0\\_%")])
            .unwrap()
            .get(0);
        assert!(
            (1..100).contains(&read),
            "{read} rows were read for {time_us}"
        );
    }
}

/// A repetition is refused after its times were counted.
#[test]
fn what_is_known_already_makes_no_row_later() {
    let server = Server::shared();
    let (topic_id, _) = server.topic(&TopicOptions::default());
    let mut connection = server.connect();
    let producer_id = connection.new_producer().unwrap();
    let mut send = |first_sequence: i64, time_us: i64| {
        let mut body = Vec::new();
        record::encode(&mut body, time_us, None, &[], b"x").unwrap();
        let mut batch = Batch::new();
        let run = Run {
            producer_id,
            first_sequence,
        };
        batch.push(run, &body).unwrap();
        connection.append(topic_id, 0, 0, &mut batch).unwrap();
    };
    send(0, 10);
    send(0, 99);
    send(1, 20);
    send(2, 30);
    assert_eq!(row_from_time(&mut connection, topic_id, 25, 0), Some(2));
}

/// Rows of version 6 do not know what is before them.
#[test]
fn times_of_a_log_of_version_six_are_found_too() {
    let server = Server::alone();
    let (topic_id, _) = server.topic(&TopicOptions {
        range_records: 100,
        ..TopicOptions::default()
    });
    let mut connection = server.connect();
    let mut rows = append(&mut connection, topic_id, &[(40, 7), (40, 3), (40, 9)]);
    let back = format!(
        "DROP TABLE pubsub.time_spans; ALTER TABLE pubsub.log_{topic_id}_0 DROP COLUMN span_latest; \
         ALTER TABLE pubsub.partitions DROP COLUMN span_latest, DROP COLUMN span_latest_before; \
         CREATE ROLE sender; GRANT UPDATE (next_offset) ON pubsub.partitions TO sender; \
         DROP TABLE pubsub.brokers; \
         ALTER TABLE pubsub.partitions ADD COLUMN lease_until timestamptz; \
         UPDATE pubsub.schema_version SET version = 6"
    );
    connection.client().batch_execute(&back).unwrap();
    let mut connection = server.connect();
    let installed = connection.install().unwrap();
    assert_eq!(installed.from, 6);
    rows.extend(append(
        &mut connection,
        topic_id,
        &[(1, 2), (50, 8), (50, 12)],
    ));
    for time_us in 0..14 {
        let found = row_from_time(&mut connection, topic_id, time_us, 0);
        assert_eq!(found, slowly(&rows, time_us, 0), "{time_us}");
    }
    let query =
        "SELECT has_column_privilege('sender', 'pubsub.partitions', 'span_latest', 'UPDATE')";
    assert!(
        connection
            .client()
            .query_one(query, &[])
            .unwrap()
            .get::<_, bool>(0)
    );
}
