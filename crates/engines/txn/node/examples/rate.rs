//! What the running engine does: transactions of one read and one write of 512 bytes.
//!
//! `cargo run --release -p dyno-txn-node --example rate -- WAY DURABILITY WHAT [--seconds N]
//! [--window N] [--keys million|k2] [--retention MS] [--server-core N] [--client-core N]`
//!
//! WAY: `local` (a ring in the process), `ring` and `tcp` (a server in the process, reached by its
//! address). WHAT: `one-shot` (pipelined), `interactive` (begin, get, put, commit; one at a time).
//! Keys: a million that are there, or K2's: uniform over 2^31, written first and then read. It
//! prints the load beside the rate, and a checksum of what was read, so that nothing is left out.

use std::time::{Duration, Instant};

use dyno_sim::Random;
use dyno_txn_api::{
    Answer, Database, Key, Operation, Options, Request, TableDef, TableId, Target, Transact,
};
use dyno_txn_node::{OpenOptions, ServeOptions, open, serve};

const VALUE_BYTES: usize = 512;
const MILLION: u64 = 1_000_000;

struct Arguments {
    way: String,
    what: String,
    k2: bool,
    window: usize,
    seconds: u64,
    retention: Duration,
    server_core: usize,
    client_core: usize,
    durability: String,
}

fn arguments() -> Arguments {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, or: &str| {
        let at = all.iter().position(|argument| argument == name);
        at.and_then(|at| all.get(at + 1))
            .cloned()
            .unwrap_or(or.to_owned())
    };
    let number = |name: &str, or: &str| -> usize { option(name, or).parse().expect("a number") };
    Arguments {
        way: all.first().cloned().unwrap_or("local".to_owned()),
        durability: all.get(1).cloned().unwrap_or("memory".to_owned()),
        what: all.get(2).cloned().unwrap_or("one-shot".to_owned()),
        k2: option("--keys", "million") == "k2",
        window: number("--window", "256"),
        seconds: number("--seconds", "5") as u64,
        retention: Duration::from_millis(number("--retention", "5000") as u64),
        server_core: number("--server-core", "1"),
        client_core: number("--client-core", "0"),
    }
}

fn main() {
    let arguments = arguments();
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let path = directory.path().join("db");
    let engine = OpenOptions {
        cores: vec![arguments.server_core],
        durability: arguments.durability.parse().expect("a durability"),
        memory_bytes: 12 << 30,
        retention: arguments.retention,
        spin: Duration::from_millis(1),
        ..OpenOptions::default()
    };
    let client = OpenOptions {
        ring: arguments.way == "ring",
        ..engine.clone()
    };
    let (server, db) = match arguments.way.as_str() {
        "local" => (None, open(&Target::Local(path), engine).expect("it opens")),
        _ => {
            let options = ServeOptions {
                engine,
                ..ServeOptions::new(path, "127.0.0.1:0")
            };
            let server = serve(options).expect("it serves");
            let target = Target::Dyno(vec![server.address().to_owned()]);
            (Some(server), open(&target, client).expect("it connects"))
        }
    };
    std::process::Command::new("taskset")
        .args(["-pc", &arguments.client_core.to_string(), &thread_id()])
        .output()
        .expect("taskset binds this thread");
    let table = db
        .create_table(&TableDef::hash("rows", 0))
        .expect("a table");
    if !arguments.k2 {
        fill(&*db, table);
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load before: {}", load.trim());
    match arguments.what.as_str() {
        "one-shot" => one_shots(&*db, table, &arguments),
        _ => interactive(&*db, table, &arguments),
    }
    println!("{:?}", db.stats().expect("figures"));
    drop(db);
    if let Some(server) = server {
        server.stop().expect("it stops");
    }
}

fn thread_id() -> String {
    let link = std::fs::read_link("/proc/thread-self").expect("proc");
    link.file_name()
        .expect("a number")
        .to_string_lossy()
        .into_owned()
}

fn key(table: TableId, number: u64) -> Key {
    Key::new(table, number.to_be_bytes())
}

fn fill(db: &dyn Database, table: TableId) {
    let mut pipeline = db.pipeline(64, &Options::default()).expect("a pipeline");
    for group in 0..MILLION / 100 {
        let puts =
            (0..100).map(|at| Operation::put(key(table, group * 100 + at), [7; VALUE_BYTES]));
        pipeline
            .submit(group, Request::Operations(puts.collect()))
            .expect("it is taken");
    }
    while pipeline.outstanding() > 0 {
        let (_, result) = pipeline
            .next(Duration::from_secs(60))
            .expect("it is answered");
        result.expect("it commits");
    }
}

fn operations(table: TableId, random: &mut Random, k2: bool, value: u8) -> Vec<Operation> {
    if k2 {
        let key = key(table, random.bits() >> 33);
        return vec![
            Operation::put(key.clone(), [value; VALUE_BYTES]),
            Operation::get(key),
        ];
    }
    let (read, write) = (random.bits() % MILLION, random.bits() % MILLION);
    let put = Operation::put(key(table, write), [value; VALUE_BYTES]);
    vec![Operation::get(key(table, read)), put]
}

fn one_shots(db: &dyn Database, table: TableId, arguments: &Arguments) {
    let mut random = Random::new(1);
    let (mut done, mut failed, mut checksum) = (0u64, 0u64, 0u64);
    let mut sent = vec![Instant::now(); arguments.window * 4];
    let mut latencies_ns = Vec::new();
    let mut pipeline = db
        .pipeline(arguments.window, &Options::default())
        .expect("a pipeline");
    let begin = Instant::now();
    let until = begin + Duration::from_secs(arguments.seconds);
    let mut number = 0u64;
    let mut take = |answer: Option<(u64, dyno_txn_api::Result<dyno_txn_api::Committed>)>,
                    sent: &[Instant]| {
        let Some((ticket, result)) = answer else {
            return;
        };
        match result {
            Ok(committed) => {
                done += 1;
                if ticket.is_multiple_of(16) {
                    latencies_ns
                        .push(sent[ticket as usize % sent.len()].elapsed().as_nanos() as u64);
                }
                for answer in committed.answers {
                    if let Answer::Value(Some(value)) = answer {
                        checksum = checksum.wrapping_add(u64::from(value[0]));
                    }
                }
            }
            Err(_) => failed += 1,
        }
    };
    while Instant::now() < until {
        while pipeline.outstanding() < arguments.window {
            let operations = operations(table, &mut random, arguments.k2, number as u8);
            let at = number as usize % sent.len();
            if number.is_multiple_of(16) {
                sent[at] = Instant::now();
            }
            pipeline
                .submit(number, Request::Operations(operations))
                .expect("it is taken");
            number += 1;
        }
        take(pipeline.next(Duration::from_secs(10)), &sent);
    }
    let seconds = begin.elapsed().as_secs_f64();
    while pipeline.outstanding() > 0 {
        take(pipeline.next(Duration::from_secs(10)), &sent);
    }
    report(done, failed, seconds, checksum, latencies_ns);
}

fn interactive(db: &dyn Database, table: TableId, arguments: &Arguments) {
    let mut random = Random::new(1);
    let (mut done, mut checksum, mut latencies_ns) = (0u64, 0u64, Vec::new());
    let begin = Instant::now();
    while begin.elapsed().as_secs() < arguments.seconds {
        let (read, write) = (random.bits() % MILLION, random.bits() % MILLION);
        let at = Instant::now();
        let value = db
            .transact(|t| {
                let value = t.get(table, &read.to_be_bytes())?;
                t.put(table, &write.to_be_bytes(), &[done as u8; VALUE_BYTES])?;
                Ok(value)
            })
            .expect("it commits");
        latencies_ns.push(at.elapsed().as_nanos() as u64);
        checksum = checksum.wrapping_add(value.map_or(0, |value| u64::from(value[0])));
        done += 1;
    }
    report(
        done,
        0,
        begin.elapsed().as_secs_f64(),
        checksum,
        latencies_ns,
    );
}

fn report(done: u64, failed: u64, seconds: f64, checksum: u64, mut latencies_ns: Vec<u64>) {
    latencies_ns.sort_unstable();
    let at = |part: f64| {
        let place = (latencies_ns.len() as f64 * part) as usize;
        latencies_ns.get(place).copied().unwrap_or(0) as f64 / 1000.0
    };
    println!(
        "{done} transactions in {seconds:.2} s: {:.0} per second; {failed} failed; \
         p50 {:.1} us, p99 {:.1} us; checksum {checksum:x}",
        done as f64 / seconds,
        at(0.5),
        at(0.99)
    );
}
