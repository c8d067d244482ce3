//! What is stored at the end, read by plain SQL, which shares no code with the library.

use dyno_postgres::postgres::{Client, Row};
use dyno_postgres::{Class, PgError};
use dyno_pubsub::Connection;

use super::Mode;
use crate::checker::{Cursor, Entry, PartitionLog, QueueLeft, Reading};
use crate::message::{self, Fingerprint};

const FETCH_BYTES: usize = 1 << 20;

/// Turns the error of a statement of the checker into ours.
fn failed(action: &str) -> impl FnOnce(dyno_postgres::postgres::Error) -> PgError {
    let action = action.to_owned();
    move |source| PgError::Statement {
        action,
        class: Class::from_error(&source),
        source: Box::new(source),
    }
}

/// The fingerprint of a stored value.
pub fn fingerprint_of(value: Option<&[u8]>) -> Result<Fingerprint, String> {
    let value = value.ok_or("it has no value")?;
    match message::read(value) {
        Ok(content) => Ok(content.fingerprint),
        Err(error) => Err(error.to_string()),
    }
}

/// First and next offset of each partition.
pub fn bounds(client: &mut Client, topic: &str) -> Result<Vec<(i64, i64)>, PgError> {
    let rows = client
        .query(
            "SELECT p.first_offset, p.next_offset FROM pubsub.partitions AS p \
             JOIN pubsub.topics AS t USING (topic_id) WHERE t.name = $1 ORDER BY p.partition",
            &[&topic],
        )
        .map_err(failed("read the partitions"))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The log as the topic's view shows it.
pub fn through_view(client: &mut Client, topic: &str) -> Result<Reading, PgError> {
    let mut partitions = Vec::new();
    for (partition, (first_offset, next_offset)) in (0..).zip(bounds(client, topic)?) {
        let ask = format!(
            "SELECT message_offset, value FROM pubsub.\"messages_{topic}\" \
             WHERE partition = {partition} ORDER BY message_offset"
        );
        let rows = client.query(&ask, &[]).map_err(failed("read the view"))?;
        partitions.push(PartitionLog {
            first_offset,
            next_offset,
            entries: rows.iter().map(entry).collect(),
        });
    }
    Ok(Reading {
        reader: "plain SQL".to_owned(),
        partitions,
    })
}

fn entry(row: &Row) -> Entry {
    Entry {
        offset: row.get(0),
        fingerprint: fingerprint_of(row.get(1)),
    }
}

/// The log as the library reads it.
pub fn through_library(
    connection: &mut Connection,
    topic: &str,
) -> Result<Reading, dyno_pubsub::Error> {
    let topic_id = connection.topic(topic)?.topic_id;
    let mut partitions = Vec::new();
    for place in connection.partitions(topic_id)? {
        let mut entries = Vec::new();
        let mut at = place.first_offset;
        while at < place.next_offset {
            let fetched = connection.fetch(topic_id, place.partition, at, FETCH_BYTES)?;
            // The log ends before the offset that it was said to. The checker finds that in the
            // reading; a loop here would not end.
            if fetched.rows.is_empty() {
                break;
            }
            for row in &fetched.rows {
                for (offset, record) in (row.base_offset..).zip(row.records()?) {
                    let fingerprint = fingerprint_of(Some(&record?.value));
                    entries.push(Entry {
                        offset,
                        fingerprint,
                    });
                }
            }
            at = fetched.next_offset;
        }
        partitions.push(PartitionLog {
            first_offset: place.first_offset,
            next_offset: place.next_offset,
            entries,
        });
    }
    Ok(Reading {
        reader: "the library".to_owned(),
        partitions,
    })
}

/// The cursors of all groups in all partitions. Groups are named g0, g1 and so on.
pub fn cursors(client: &mut Client, mode: Mode, topic: &str) -> Result<Vec<Cursor>, PgError> {
    let query = match mode {
        // Groups of Kafka do not count what they are given again, so that is not bounded.
        Mode::Kafka => {
            "SELECT substring(o.group_name FROM 2)::int, o.partition, o.committed, \
                    9223372036854775807::bigint, 0::bigint \
             FROM pubsub.kafka_offsets AS o JOIN pubsub.topics AS t USING (topic_id) \
             WHERE t.name = $1"
        }
        _ => {
            "SELECT substring(g.name FROM 2)::int, a.partition, a.committed, a.redelivered, a.lost \
             FROM pubsub.assignments AS a JOIN pubsub.groups AS g USING (group_id) \
             JOIN pubsub.topics AS t USING (topic_id) WHERE t.name = $1"
        }
    };
    let rows = client
        .query(query, &[&topic])
        .map_err(failed("read the cursors"))?;
    Ok(rows
        .iter()
        .map(|row| Cursor {
            group: row.get::<_, i32>(0).unsigned_abs(),
            partition: row.get::<_, i32>(1).unsigned_abs(),
            committed: row.get(2),
            redelivered: row.get::<_, i64>(3).unsigned_abs(),
            lost: row.get::<_, i64>(4).unsigned_abs(),
        })
        .collect())
}

/// How many messages groups have not committed, over all `groups`. A group that has committed
/// nothing lacks all of them.
pub fn lag(client: &mut Client, mode: Mode, topic: &str, groups: u32) -> Result<i64, PgError> {
    let committed = match mode {
        Mode::Kafka => {
            "SELECT group_name AS name, topic_id, partition, committed FROM pubsub.kafka_offsets"
        }
        _ => {
            "SELECT g.name, g.topic_id, a.partition, a.committed \
             FROM pubsub.groups AS g JOIN pubsub.assignments AS a USING (group_id)"
        }
    };
    let query = format!(
        "SELECT coalesce(sum(p.next_offset - coalesce(c.committed, 0)), 0)::bigint \
         FROM generate_series(0, $2::int - 1) AS n CROSS JOIN pubsub.topics AS t \
         JOIN pubsub.partitions AS p USING (topic_id) \
         LEFT JOIN ({committed}) AS c ON c.name = 'g' || n \
              AND c.topic_id = t.topic_id AND c.partition = p.partition \
         WHERE t.name = $1"
    );
    let row = client
        .query_one(&query, &[&topic, &groups.cast_signed()])
        .map_err(failed("read the groups' lag"))?;
    Ok(row.get(0))
}

/// Dead rows of all tables of the schema.
pub fn dead_rows(client: &mut Client) -> Result<i64, PgError> {
    let row = client
        .query_one(
            "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables \
             WHERE schemaname = 'pubsub'",
            &[],
        )
        .map_err(failed("count dead rows"))?;
    Ok(row.get(0))
}

/// How many bytes of write-ahead log the server may keep. It aims at `max_wal_size`, and exceeds it
/// while a checkpoint is under way.
pub fn log_most_bytes(client: &mut Client) -> Result<u64, PgError> {
    let row = client
        .query_one(
            "SELECT (pg_size_bytes(current_setting('max_wal_size')) * 5 / 4)::bigint",
            &[],
        )
        .map_err(failed("read the bound on the write-ahead log"))?;
    Ok(row.get::<_, i64>(0).unsigned_abs())
}

/// Applies retention, as an operator's timer would.
pub fn maintain(client: &mut Client) -> Result<(), PgError> {
    client
        .execute("SELECT pubsub.maintain()", &[])
        .map(|_| ())
        .map_err(failed("drop what retention does not keep"))
}

/// The number of a queue's tables.
fn queue_number(client: &mut Client, queue: &str) -> Result<i32, PgError> {
    client
        .query_one(
            "SELECT queue_id FROM pubsub.queues WHERE name = $1",
            &[&queue],
        )
        .map(|row| row.get(0))
        .map_err(failed("find the queue"))
}

/// How many messages of a queue wait or are claimed.
pub fn queue_waiting(client: &mut Client, queue: &str) -> Result<i64, PgError> {
    let ask = format!(
        "SELECT count(*) FROM pubsub.queue_{}",
        queue_number(client, queue)?
    );
    client
        .query_one(&ask, &[])
        .map(|row| row.get(0))
        .map_err(failed("count the queue"))
}

/// What a queue and its dead letters hold.
pub fn queue_left(client: &mut Client, queue: &str) -> Result<Vec<QueueLeft>, PgError> {
    let number = queue_number(client, queue)?;
    let ask = format!(
        "SELECT message_id, false, payload FROM pubsub.queue_{number} UNION ALL \
         SELECT message_id, true, payload FROM pubsub.queue_{number}_dead ORDER BY 1"
    );
    let rows = client.query(&ask, &[]).map_err(failed("read the queue"))?;
    Ok(rows
        .iter()
        .map(|row| QueueLeft {
            id: row.get(0),
            dead: row.get(1),
            fingerprint: fingerprint_of(row.get(2)),
        })
        .collect())
}
