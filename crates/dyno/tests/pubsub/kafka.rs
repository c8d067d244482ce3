//! kcat against a broker of the command line, which is killed with its database in the middle.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dyno_postgres::Dsn;
use dyno_postgres::postgres::{self, Client, NoTls};
use parking_lot::Mutex;

use crate::served::{Log, has_server, ok};

/// Records that kcat sends, unless `DYNO_KAFKA_RECORDS` says how many.
const RECORDS: usize = 40_000;
const KEYS: usize = 17;
/// Far longer than all of it takes on a busy machine.
const LONG: Duration = Duration::from_secs(300);

/// What kcat sends, a line a record: each key's values count up.
fn lines(records: usize) -> String {
    let line = |n: usize| format!("key-{}:{}\n", n % KEYS, n / KEYS);
    (0..records).map(line).collect()
}

/// A kcat that waits out kills: it sends each batch again until it is acknowledged, and an
/// idempotent producer's batches are in the log once.
fn producing(address: &str, records: usize) -> (Child, std::thread::JoinHandle<()>) {
    let mut kcat = Command::new("kcat")
        // It would end as soon as no broker can be reached, which is not fatal.
        .args(["-E", "-P", "-q", "-b", address, "-t", "kept", "-K", ":"])
        .args([
            "-X",
            "enable.idempotence=true",
            "-X",
            "message.timeout.ms=300000",
        ])
        .args(["-X", "batch.num.messages=500", "-X", "retry.backoff.ms=50"])
        .args([
            "-X",
            "reconnect.backoff.max.ms=500",
            "-X",
            "socket.timeout.ms=5000",
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = kcat.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        // In steps, so that the kills fall between records that are sent and records that are not.
        for chunk in lines(records).as_bytes().chunks(16 << 10) {
            stdin.write_all(chunk).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    (kcat, writing)
}

#[test]
fn every_record_is_there_once_and_in_order_after_two_kills_of_broker_and_server() {
    if !has_server() {
        return;
    }
    if Command::new("kcat").arg("-V").output().is_err() {
        println!("skipped: kcat outlives kills: kcat is not installed");
        return;
    }
    let records = std::env::var("DYNO_KAFKA_RECORDS");
    let records = records.map_or(RECORDS, |records| records.parse().unwrap());
    let port = dyno_ports::free().unwrap();
    let address = format!("127.0.0.1:{port}");
    let more = ["--kafka", address.as_str()];
    let mut log = Log::start_with(&more);
    ok(
        log.dyno(&["topic", "create", "kept", "--partitions", "3"]),
        "",
    );
    let (mut kcat, writing) = producing(&address, records);
    let begun = Instant::now();
    for third in 1..=2 {
        let wanted = (records * third / 4) as i64;
        while log.records("kept") < wanted {
            assert!(begun.elapsed() < LONG, "no progress");
            assert!(kcat.try_wait().unwrap().is_none(), "kcat has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The kernel stops the server under a broker that is killed.
        log.kill();
        log.start_again_with(&more);
    }
    writing.join().unwrap();
    assert!(kcat.wait().unwrap().success());

    let mut consume = Command::new("kcat");
    consume.args([
        "-C", "-q", "-e", "-b", &address, "-t", "kept", "-f", "%k %s\n",
    ]);
    let read = ok(consume, "");
    let mut next = [0; KEYS];
    for line in read.lines() {
        let (key, value) = line.split_once(' ').unwrap();
        let key: usize = key.trim_start_matches("key-").parse().unwrap();
        assert_eq!(value.parse(), Ok(next[key]), "{line}");
        next[key] += 1;
    }
    assert_eq!(next.iter().sum::<usize>(), records);

    // The same records in a group of our own, whose name clients of Kafka cannot take then.
    let group = ["consume", "kept", "--group", "ours", "--until-empty"];
    assert_eq!(ok(log.dyno(&group), "").lines().count(), records);
    let mut taken = Command::new("kcat");
    taken.args(["-b", &address, "-G", "ours", "kept", "-X", "debug=cgrp"]);
    taken
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut taken = taken.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    taken.kill().unwrap();
    let said = taken.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("a group of dyno's own consumers"), "{said}");
    log.stop();
}

/// A user's program: it writes orders and sends a record of each in the same transaction, rolls
/// every third one back, and connects again where it loses its server.
struct Shop {
    /// Where the server is; it changes when the server is started again.
    dsn: Arc<Mutex<String>>,
    /// Transactions that were acknowledged.
    acknowledged: Arc<AtomicI32>,
    stop: Arc<AtomicBool>,
}

impl Shop {
    fn open(self) -> JoinHandle<()> {
        std::thread::spawn(move || {
            let mut id = 0;
            while !self.stop.load(Ordering::Acquire) {
                let dsn = Dsn::parse(&self.dsn.lock()).unwrap();
                // Between a kill and the next start there is no server to connect to.
                let Ok(mut client) = dsn.config().connect(NoTls) else {
                    std::thread::sleep(Duration::from_millis(50));
                    continue;
                };
                while !self.stop.load(Ordering::Acquire) && order(&mut client, id).is_ok() {
                    id += 1;
                    self.acknowledged.store(id, Ordering::Release);
                }
                // Whether the last one is committed is not known. It is left as it is: the orders
                // in the table say so, and its number is not used again.
                id += 1;
            }
        })
    }
}

fn order(client: &mut Client, id: i32) -> Result<(), postgres::Error> {
    let mut transaction = client.transaction()?;
    transaction.execute("INSERT INTO orders VALUES ($1)", &[&id])?;
    transaction.execute(
        "SELECT pubsub.send('outbox', convert_to($1, 'UTF8'), key => convert_to($2, 'UTF8'))",
        &[&format!("{id}"), &format!("customer-{}", id % KEYS as i32)],
    )?;
    match id % 3 {
        0 => transaction.rollback(),
        _ => transaction.commit(),
    }
}

#[test]
fn kcat_reads_of_an_outbox_what_was_committed_and_nothing_else_after_kills() {
    if !has_server() {
        return;
    }
    if Command::new("kcat").arg("-V").output().is_err() {
        println!("skipped: an outbox outlives kills: kcat is not installed");
        return;
    }
    let address = format!("127.0.0.1:{}", dyno_ports::free().unwrap());
    let more = ["--kafka", address.as_str()];
    let mut log = Log::start_with(&more);
    ok(
        log.dyno(&["topic", "create", "outbox", "--partitions", "3"]),
        "",
    );
    let connect = |log: &Log| Dsn::parse(&log.dsn).unwrap().config().connect(NoTls);
    let table = "CREATE TABLE orders (id int PRIMARY KEY)";
    connect(&log).unwrap().batch_execute(table).unwrap();
    let dsn = Arc::new(Mutex::new(log.dsn.clone()));
    let acknowledged = Arc::new(AtomicI32::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let shop = Shop {
        dsn: Arc::clone(&dsn),
        acknowledged: Arc::clone(&acknowledged),
        stop: Arc::clone(&stop),
    };
    let shop = shop.open();
    let begun = Instant::now();
    let wait_for = |least: i32| {
        while acknowledged.load(Ordering::Acquire) < least {
            assert!(begun.elapsed() < LONG, "no progress");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    for _ in 0..2 {
        wait_for(acknowledged.load(Ordering::Acquire) + 300);
        log.kill();
        log.start_again_with(&more);
        (*dsn.lock()).clone_from(&log.dsn);
    }
    wait_for(acknowledged.load(Ordering::Acquire) + 300);
    stop.store(true, Ordering::Release);
    shop.join().unwrap();

    let mut client = connect(&log).unwrap();
    let rows = client.query("SELECT id FROM orders", &[]).unwrap();
    let mut committed: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    committed.sort_unstable();
    let mut consume = Command::new("kcat");
    consume.args(["-C", "-q", "-e", "-b", &address, "-t", "outbox"]);
    let read = ok(consume, "");
    let mut read: Vec<i32> = read.lines().map(|line| line.parse().unwrap()).collect();
    // Of one customer they come in order; partitions are read one after the other.
    for customer in 0..KEYS as i32 {
        let own: Vec<i32> = read
            .iter()
            .copied()
            .filter(|id| id % KEYS as i32 == customer)
            .collect();
        assert!(own.is_sorted(), "customer {customer}: {own:?}");
    }
    read.sort_unstable();
    assert_eq!(read, committed);
    assert!(committed.len() > 500, "{} orders", committed.len());
    log.stop();
}
