//! The engine on a private cluster.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod append;
mod group_admin;
mod groups;
mod kafka;
mod manual;
mod placed;
mod producing;
mod queue_front;
mod queues;
mod ranges;
mod reading;
mod retention;
mod roles;
mod schema;
mod server;
mod sql;
mod times;
mod transactions;

use dyno_pubsub::record::{self, Batch, Run};
use dyno_pubsub::{Appended, Connection, Record, StoredRow};

/// A batch of one producer's records with these values.
fn batch(producer_id: i64, first_sequence: i64, values: &[&[u8]]) -> Batch {
    let mut body = Vec::new();
    for value in values {
        record::encode(&mut body, 1_700_000_000_000_000, None, &[], value).unwrap();
    }
    let mut batch = Batch::new();
    let run = Run {
        producer_id,
        first_sequence,
    };
    batch.push(run, &body).unwrap();
    batch
}

fn base(appended: Appended) -> i64 {
    match appended {
        Appended::New { base_offset, .. } => base_offset,
        known => panic!("{known:?}"),
    }
}

/// All records of a partition from an offset on, with their offsets.
fn read_all(
    server: &mut Connection,
    topic_id: i32,
    partition: i32,
    from: i64,
) -> Vec<(i64, Record)> {
    let mut read = Vec::new();
    let mut offset = from;
    loop {
        let fetched = server.fetch(topic_id, partition, offset, 1 << 20).unwrap();
        if fetched.rows.is_empty() {
            return read;
        }
        read.extend(
            fetched
                .rows
                .iter()
                .flat_map(unpack)
                .filter(|(at, _)| *at >= from),
        );
        offset = fetched.next_offset;
    }
}

fn unpack(row: &StoredRow) -> Vec<(i64, Record)> {
    let records = row.records().unwrap().map(|record| record.unwrap());
    (row.base_offset..).zip(records).collect()
}
