//! What an append costs the server and the client, in direct mode: writers with batches of
//! incompressible records, groups that read all of them. One line per way of appending.
//!
//!     cargo run --release -p dyno-pubsub --example direct -- 5 2
//!
//! (seconds for each way, groups). The ways: the function of the partition, and a prepared
//! statement that does the same for one producer with common table expressions and an array of
//! bodies.

use std::error::Error;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_postgres::postgres::types::ToSql;
use dyno_postgres::{Cluster, Options};
use dyno_pubsub::record::{self, Batch, Run};
use dyno_pubsub::{Connection, Dsn, TopicOptions};

const PARTITIONS: u32 = 4;
const WRITERS: usize = 8;
const BATCH: usize = 200;
const PAYLOAD_BYTES: usize = 1024;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Function,
    Statement,
}

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let seconds: u64 = args.next().map_or(Ok(5), |text| text.parse())?;
    let groups: usize = args.next().map_or(Ok(2), |text| text.parse())?;
    let dir = tempfile::Builder::new()
        .prefix("dyno-direct-")
        .tempdir_in("/tmp")?;
    let cluster = Cluster::open(&dir.path().join("pg"), Options::default())?;
    println!("way        msg/s   MiB/s  server us/msg  client us/msg  read/s");
    for _ in 0..3 {
        for (way, name) in [(Way::Function, "function"), (Way::Statement, "statement")] {
            let run = measure(&cluster, way, Duration::from_secs(seconds), groups)?;
            println!("{name:9} {run}");
        }
    }
    Ok(())
}

fn measure(cluster: &Cluster, way: Way, length: Duration, groups: usize) -> Outcome<String> {
    let dsn = cluster.dsn();
    let mut admin = Connection::open(&dsn)?;
    admin.install()?;
    let options = TopicOptions {
        partitions: PARTITIONS,
        ..TopicOptions::default()
    };
    let topic_id = admin.create_topic("measured", &options)?;
    let stop = AtomicBool::new(false);
    let (written, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let servers = || server_cpu_seconds(cluster);
    let before = (servers()?, own_cpu_seconds()?, Instant::now());
    let after = thread::scope(|scope| -> Outcome<_> {
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let (dsn, stop, written) = (&dsn, &stop, &written);
            threads.push(scope.spawn(move || write(dsn, topic_id, writer, way, stop, written)));
        }
        for reader in 0..groups * PARTITIONS as usize {
            let (dsn, stop, read) = (&dsn, &stop, &read);
            threads.push(scope.spawn(move || follow(dsn, topic_id, reader, stop, read)));
        }
        thread::sleep(length);
        let after = (servers()?, own_cpu_seconds()?, before.2.elapsed());
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(after)
    })?;
    let messages = written.load(Ordering::Relaxed) as f64;
    let seconds = after.2.as_secs_f64();
    admin.drop_topic("measured")?;
    admin.client().batch_execute("CHECKPOINT")?;
    Ok(format!(
        "{:7.0} {:7.1} {:14.2} {:14.2} {:7.0}",
        messages / seconds,
        messages * PAYLOAD_BYTES as f64 / seconds / f64::from(1 << 20),
        (after.0 - before.0) * 1e6 / messages,
        (after.1 - before.1) * 1e6 / messages,
        read.load(Ordering::Relaxed) as f64 / seconds,
    ))
}

fn write(
    dsn: &Dsn,
    topic_id: i32,
    writer: usize,
    way: Way,
    stop: &AtomicBool,
    written: &AtomicU64,
) -> Outcome<()> {
    let mut connection = Connection::open(dsn)?;
    let partition = i32::try_from(writer)? % PARTITIONS.cast_signed();
    let producer_id = connection.new_producer()?;
    let mut random = producer_id.cast_unsigned() | 1;
    let mut payload = vec![0; PAYLOAD_BYTES];
    let mut first_sequence = 0;
    let statement = match way {
        Way::Function => None,
        Way::Statement => Some(
            connection
                .client()
                .prepare(&bare_statement(topic_id, partition))?,
        ),
    };
    let prime = "INSERT INTO pubsub.producers VALUES ($1, $2, $3, -1, 0, 0)";
    connection
        .client()
        .execute(prime, &[&topic_id, &partition, &producer_id])?;
    while !stop.load(Ordering::Relaxed) {
        let mut body = Vec::with_capacity(BATCH * (PAYLOAD_BYTES + 32));
        for _ in 0..BATCH {
            for eight in payload.chunks_exact_mut(8) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                eight.copy_from_slice(&random.to_le_bytes());
            }
            record::encode(&mut body, 0, None, &[], &payload)?;
        }
        let mut batch = Batch::new();
        let run = Run {
            producer_id,
            first_sequence,
        };
        batch.push(run, &body)?;
        match &statement {
            None => {
                connection.append(topic_id, partition, 0, &mut batch)?;
            }
            Some(statement) => append_bare(&mut connection, statement, run, &batch)?,
        }
        first_sequence += BATCH as i64;
        written.fetch_add(BATCH as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn append_bare(
    connection: &mut Connection,
    statement: &dyno_postgres::postgres::Statement,
    run: Run,
    batch: &Batch,
) -> Outcome<()> {
    let last = run.first_sequence + BATCH as i64 - 1;
    let heads: Vec<_> = batch.heads().collect();
    let relatives: Vec<i64> = heads.iter().map(|head| head.relative).collect();
    let counts: Vec<i32> = heads.iter().map(|head| head.count).collect();
    let times: Vec<i64> = heads.iter().map(|head| head.first_time_us).collect();
    let crcs: Vec<i32> = batch
        .bodies()
        .map(|body| dyno_checksum::crc32c(body).cast_signed())
        .collect();
    let bodies: Vec<&[u8]> = batch.bodies().collect();
    let parameters: [&(dyn ToSql + Sync); 8] = [
        &run.producer_id,
        &run.first_sequence,
        &last,
        &relatives,
        &counts,
        &times,
        &crcs,
        &bodies,
    ];
    connection.client().query_one(statement, &parameters)?;
    Ok(())
}

/// The same as one statement, for one producer that is known and in order.
fn bare_statement(topic_id: i32, partition: i32) -> String {
    format!(
        "WITH counter AS (UPDATE pubsub.partitions AS s SET next_offset = s.next_offset + {BATCH} \
           WHERE s.topic_id = {topic_id} AND s.partition = {partition} RETURNING s.next_offset - {BATCH} AS base), \
         producer AS (UPDATE pubsub.producers AS s SET sequence = $3::bigint, last_base = counter.base, last_first = $2::bigint, \
           seen_at = now() FROM counter WHERE s.topic_id = {topic_id} AND s.partition = {partition} \
           AND s.producer_id = $1::bigint AND s.sequence = $2::bigint - 1 RETURNING counter.base), \
         rows AS (INSERT INTO pubsub.log_{topic_id}_{partition} \
             (base_offset, count, first_time, last_time, appended_at, runs, flags, crc, bytes, body) \
           SELECT producer.base + r.relative, r.count, r.first_time, r.first_time, clock_timestamp(), \
               ARRAY[$1::bigint, $2::bigint + r.relative, r.count], 0::smallint, r.crc, length(r.body), r.body \
             FROM producer, unnest($4::bigint[], $5::int[], $6::bigint[], $7::int[], $8::bytea[]) \
               AS r (relative, count, first_time, crc, body)) \
         SELECT base FROM producer"
    )
}

fn follow(
    dsn: &Dsn,
    topic_id: i32,
    reader: usize,
    stop: &AtomicBool,
    read: &AtomicU64,
) -> Outcome<()> {
    let mut connection = Connection::open(dsn)?;
    let partition = i32::try_from(reader)? % PARTITIONS.cast_signed();
    let mut offset = 0;
    while !stop.load(Ordering::Relaxed) {
        let fetched = connection.fetch(topic_id, partition, offset, 1 << 20)?;
        let records: i64 = fetched.rows.iter().map(|row| i64::from(row.count)).sum();
        offset = fetched.next_offset;
        read.fetch_add(records.cast_unsigned(), Ordering::Relaxed);
        if records == 0 {
            thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}

fn server_cpu_seconds(cluster: &Cluster) -> Outcome<f64> {
    let pids = cluster.pids();
    let all = pids.postmaster.iter().chain(&pids.children);
    Ok(all
        .map(|pid| cpu_seconds(&format!("/proc/{pid}/stat")).unwrap_or(0.0))
        .sum())
}

fn own_cpu_seconds() -> Outcome<f64> {
    cpu_seconds("/proc/self/stat")
}

/// User and system time; a process that has ended has none.
fn cpu_seconds(stat: &str) -> Outcome<f64> {
    let text = fs::read_to_string(stat)?;
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    Ok(ticks / 100.0)
}
