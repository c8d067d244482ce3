//! How many messages a second a broker acknowledges, and what they cost.
//!
//! `load BATCH OUTSTANDING CONNECTIONS PARTITIONS GROUPS SECONDS`: requests of BATCH records of 1
//! KiB, OUTSTANDING requests over CONNECTIONS connections, while GROUPS readers follow every
//! partition. A private cluster, the broker and the load share the machine; CPU is of broker and
//! load together, and of the server.

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dyno_net::Address;
use dyno_postgres::{Cluster, Options as ClusterOptions};
use dyno_pubsub::record::encode;
use dyno_pubsub::wire::{Client, ClientOptions, Fetch, NewProducer, Produce, Rest, Rows};
use dyno_pubsub::{Connection, TopicOptions};
use dyno_pubsub_broker::{Broker, Options};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let given: Vec<u64> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let number = |at: usize, or: u64| given.get(at).copied().unwrap_or(or);
    let load = Load {
        batch: number(0, 1),
        outstanding: number(1, 1000),
        connections: number(2, 8),
        partitions: number(3, 4),
        groups: number(4, 0),
        seconds: number(5, 5),
    };
    let folder = tempfile::Builder::new()
        .prefix("dyno-load-")
        .tempdir_in("/tmp")?;
    let mut cluster = Cluster::open(&folder.path().join("pg"), ClusterOptions::default())?;
    let mut connection = Connection::open(&cluster.dsn())?;
    connection.install()?;
    let options = TopicOptions {
        partitions: load.partitions as u32,
        ..TopicOptions::default()
    };
    let topic_id = connection.create_topic("load", &options)?;
    let address = Address::Unix(folder.path().join("broker"));
    let mut broker = Broker::start(Options::new(cluster.dsn(), address.clone()))?;
    while broker.partitions().len() < load.partitions as usize {
        thread::sleep(Duration::from_millis(10));
    }
    load.run(topic_id, &address.to_string(), &cluster)?;
    for counter in broker.counters() {
        println!("  {} {}", counter.name, counter.value);
    }
    broker.stop();
    cluster.stop()?;
    Ok(())
}

#[derive(Clone, Copy)]
struct Load {
    batch: u64,
    outstanding: u64,
    connections: u64,
    partitions: u64,
    groups: u64,
    seconds: u64,
}

impl Load {
    fn run(self, topic_id: i32, address: &str, cluster: &Cluster) -> Outcome<()> {
        let acknowledged = Arc::new(AtomicU64::new(0));
        let read = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for connection in 0..self.connections {
            let client = Client::connect(address, &ClientOptions::default())?;
            let (acknowledged, stop) = (Arc::clone(&acknowledged), Arc::clone(&stop));
            threads.push(thread::spawn(move || {
                self.produce(&client, topic_id, connection, &acknowledged, &stop);
            }));
        }
        for _ in 0..self.groups {
            for partition in 0..self.partitions {
                let client = Client::connect(address, &ClientOptions::default())?;
                let (read, stop) = (Arc::clone(&read), Arc::clone(&stop));
                threads.push(thread::spawn(move || {
                    follow(&client, topic_id, partition as i32, &read, &stop);
                }));
            }
        }
        thread::sleep(Duration::from_secs(1));
        let now = || {
            (
                acknowledged.load(Ordering::Relaxed),
                read.load(Ordering::Relaxed),
            )
        };
        // Looking for the server's processes is work too, so it comes before.
        let servers = server_cpu_s(cluster);
        let (before, ours) = (now(), own_cpu_s()?);
        let began = Instant::now();
        thread::sleep(Duration::from_secs(self.seconds));
        let (after, seconds) = (now(), began.elapsed().as_secs_f64());
        let written = (after.0 - before.0) as f64;
        println!(
            "{:.0} messages/s acknowledged, {:.0}/s read; CPU us per message: broker and load {:.1}, server {:.1}",
            written / seconds,
            (after.1 - before.1) as f64 / seconds,
            (own_cpu_s()? - ours) * 1e6 / written,
            (server_cpu_s(cluster) - servers) * 1e6 / written,
        );
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread of the load panicked")?;
        }
        Ok(())
    }

    /// One connection with its share of requests under way; every answer makes room for the next.
    fn produce(
        self,
        client: &Client,
        topic_id: i32,
        connection: u64,
        acknowledged: &Arc<AtomicU64>,
        stop: &AtomicBool,
    ) {
        let id = client.ask(&NewProducer {}).expect("an id").producer_id;
        let mut body = Vec::new();
        for record in 0..self.batch {
            let value = noise(1024, connection * 1000 + record);
            encode(&mut body, 0, None, &[], &value).expect("a short record");
        }
        let body = Bytes::from(body);
        let crc = dyno_checksum::crc32c(&body);
        let mut sequences = vec![0_i64; self.partitions as usize];
        let (answers, answered) = mpsc::channel();
        let mut open = 0;
        let mut turn = connection;
        while !stop.load(Ordering::Relaxed) || open > 0 {
            while open < self.outstanding / self.connections && !stop.load(Ordering::Relaxed) {
                let partition = (turn % self.partitions) as usize;
                turn += 1;
                let produce = Produce {
                    topic_id,
                    partition: partition as i32,
                    producer_id: id,
                    first_sequence: sequences[partition],
                    count: self.batch as u32,
                    crc,
                    codec: 0,
                    body: Rest::one(body.clone()),
                };
                sequences[partition] += self.batch as i64;
                let answers = answers.clone();
                client.send(&produce, move |answer| {
                    answers
                        .send(answer)
                        .expect("the load waits for its answers");
                });
                open += 1;
            }
            answered
                .recv()
                .expect("an answer")
                .expect("an acknowledgement");
            open -= 1;
            acknowledged.fetch_add(self.batch, Ordering::Relaxed);
        }
    }
}

/// Reads a partition as it grows.
fn follow(client: &Client, topic_id: i32, partition: i32, read: &AtomicU64, stop: &AtomicBool) {
    let mut offset = 0;
    while !stop.load(Ordering::Relaxed) {
        let fetch = Fetch {
            topic_id,
            partition,
            offset,
            most_bytes: 1 << 20,
            least_bytes: 1,
            wait_ms: 200,
        };
        let fetched = client.ask(&fetch).expect("rows");
        for row in Rows::new(fetched.rows.bytes()) {
            let (head, body) = row.expect("a row");
            assert_eq!(head.crc, Some(dyno_checksum::crc32c(&body)));
            offset = head.base_offset + i64::from(head.count);
            read.fetch_add(u64::from(head.count), Ordering::Relaxed);
        }
    }
}

/// Bytes that do not compress.
fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// CPU seconds of this process so far.
fn own_cpu_s() -> Outcome<f64> {
    cpu_s("self").ok_or_else(|| "cannot read /proc/self/stat".into())
}

/// CPU seconds of the server's living processes.
fn server_cpu_s(cluster: &Cluster) -> f64 {
    let pids = cluster.pids();
    let all = pids.postmaster.into_iter().chain(pids.children);
    all.filter_map(|pid| cpu_s(&pid.to_string())).sum()
}

fn cpu_s(pid: &str) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}
