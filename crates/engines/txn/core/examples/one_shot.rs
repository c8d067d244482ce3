//! What one partition does alone: one-shots of one read and one write per second, in one thread,
//! without threads or sockets around it. `million` takes a million keys that are there; `k2` takes
//! keys uniform over 2^31, which nearly always are new, writes first and then reads the same key.
//! `--wire` encodes and decodes each message, `--log` makes log records, `--together N` has N
//! requests come together (they are prefetched). Prints a checksum of the answers, so that nothing
//! is left out.
//!
//! `cargo run --release -p dyno-txn-core --example one_shot -- k2 2000000`

use std::collections::VecDeque;
use std::time::Instant;

use dyno_sim::Random;
use dyno_txn_api::{Answer, Key, Operation, Procedures, Request, TableDef, TableId, Timestamp};
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::{Config, Effects, Partition, Timestamps};

const VALUE_BYTES: usize = 512;
const CLIENT: Address = Address::Client(1);
const TABLE: TableId = TableId(1);

struct Counter(Timestamp);

impl Timestamps for Counter {
    fn next(&mut self) -> Option<Timestamp> {
        self.0 += 1_000;
        Some(self.0)
    }

    fn plausible(&mut self, timestamp: Timestamp) -> bool {
        timestamp <= self.0
    }
}

fn request(ticket: u64, operations: Vec<Operation>) -> Message {
    Message::OneShot {
        ticket,
        timestamp: None,
        priority: 128,
        deadline_ns: 1_000_000_000,
        request: Request::Operations(operations),
    }
}

fn key(number: u64) -> Key {
    Key::new(TABLE, number.to_be_bytes())
}

/// A partition with a table, and a million rows in it unless it is to begin empty.
fn filled(config: Config, empty: bool) -> Partition {
    let mut partition = Partition::new(config, Procedures::new(), Box::new(Counter(0)));
    let mut effects = Effects::default();
    let def = TableDef::hash("bench", 0);
    partition.handle(
        0,
        CLIENT,
        Message::CreateTable { ticket: 0, def },
        &mut effects,
    );
    partition.durable(0, partition.appended(), &mut effects);
    effects.sends.clear();
    effects.records.clear();
    if !empty {
        for number in 0..1_000_000 {
            let put = Operation::put(key(number), vec![7; VALUE_BYTES]);
            partition.handle(0, CLIENT, request(number, vec![put]), &mut effects);
            partition.durable(0, partition.appended(), &mut effects);
            effects.sends.clear();
            effects.records.clear();
        }
    }
    partition
}

fn operations(random: &mut Random, k2: bool, ticket: u64) -> Vec<Operation> {
    let value = vec![ticket as u8; VALUE_BYTES];
    if k2 {
        let key = key(random.bits() >> 33);
        return vec![Operation::put(key.clone(), value), Operation::get(key)];
    }
    let (read, write) = (random.bits() % 1_000_000, random.bits() % 1_000_000);
    vec![Operation::get(key(read)), Operation::put(key(write), value)]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let k2 = arguments.get(1).is_some_and(|name| name == "k2");
    let count: u64 = arguments
        .get(2)
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000_000);
    let log = arguments.iter().any(|argument| argument == "--log");
    let wire = arguments.iter().any(|argument| argument == "--wire");
    let together = arguments
        .iter()
        .position(|argument| argument == "--together");
    let together = together.and_then(|at| arguments.get(at + 1)?.parse().ok());
    let together: u64 = together.unwrap_or(1);
    let mut config = Config::new(0, 1);
    config.log = log;
    config.memory_bytes = 12 << 30;
    config.retention_ns = 100_000_000;
    let mut partition = filled(config, k2);
    let (mut effects, mut random) = (Effects::default(), Random::new(1));
    let (mut checksum, mut bytes) = (0u64, Vec::new());
    let begin = Instant::now();
    let mut waiting = VecDeque::new();
    for ticket in 0..count {
        if waiting.is_empty() {
            for ticket in ticket..count.min(ticket + together) {
                let mut message = request(ticket, operations(&mut random, k2, ticket));
                if wire {
                    bytes.clear();
                    message.encode(&mut bytes);
                    message = Message::decode(&bytes).expect("just encoded");
                }
                waiting.push_back(message);
            }
            if together > 1 {
                partition.prefetch(&waiting);
            }
        }
        let message = waiting.pop_front().expect("one is there");
        partition.handle(ticket, CLIENT, message, &mut effects);
        if log {
            partition.durable(ticket, partition.appended(), &mut effects);
        }
        for (_, answer) in effects.sends.drain(..) {
            if wire {
                bytes.clear();
                answer.encode(&mut bytes);
            }
            let Message::Done {
                result: Ok(done), ..
            } = answer
            else {
                panic!("{answer:?}");
            };
            for answer in done.answers {
                if let Answer::Value(Some(value)) = answer {
                    checksum = checksum.wrapping_mul(31).wrapping_add(u64::from(value[0]));
                }
            }
        }
        effects.records.clear();
    }
    let seconds = begin.elapsed().as_secs_f64();
    let rate = count as f64 / seconds;
    let memory_mb = partition.memory_bytes() >> 20;
    println!(
        "{count} transactions in {seconds:.3} s: {rate:.0} per second; {memory_mb} MiB; {checksum:x}"
    );
    println!("{:?}", partition.counters());
}
