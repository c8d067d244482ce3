//! A soak test of a real server: under a steady load for a long time, memory, disk space and
//! latency must stay where they began, and every rule must hold.
//!
//! The soak is divided into minutes. Each begins with empty tables, so that lists stay short and a
//! history can be judged and dropped, while the server continues. Transactions are due at a steady
//! pace, and their latency counts from the moment at which they were due.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_soak::{Trend, is_long, p99, private_bytes};
use dyno_txn_api::{Database, Operation, Transact};
use serde::{Deserialize, Serialize};

use crate::drive::{Drive, Judgement, Plan};
use crate::history::{History, HistoryError, Key, Outcome, Transaction};
use crate::server::{self, Connect, Server, ServerError, Start};
use crate::workload::{ACCOUNTS, LISTS, REGISTERS, Shape, Tables};

const MINUTE: Duration = Duration::from_secs(60);
/// Time between two samples of the server.
const LOOK: Duration = Duration::from_secs(5);
/// Time between two checks whether the minute is over.
const TICK: Duration = Duration::from_millis(20);
/// How long an operation that must succeed may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// More rows than in a check of kills, because more transactions share them.
const SHAPE: Shape = Shape {
    accounts: 20,
    balance: 100,
    registers: 64,
    lists: 40,
    keys_only: false,
};
/// Differences below these do not count as growth: memory and disk in bytes, latency in
/// milliseconds.
const MEMORY_GRAIN: f64 = 8e6;
const DISK_GRAIN: f64 = 64e6;
const LATENCY_GRAIN_MS: f64 = 5.0;

/// Settings of a soak.
pub struct Options<'a> {
    /// Starts the server on a directory.
    pub start: &'a Start<'a>,
    /// Connects a client to the server.
    pub connect: &'a Connect<'a>,
    /// An existing folder for the server's directory and its output.
    pub folder: &'a Path,
    /// How long the soak lasts; the last minute may be shorter.
    pub length: Duration,
    /// Seed of the clients' choices.
    pub seed: u64,
    /// Clients, each in a thread. Every second one uses shared memory.
    pub clients: u32,
    /// Transactions per second of all clients together.
    pub rate: u32,
    /// Ends the soak early when it is set.
    pub stop: &'a AtomicBool,
    /// Called after each minute with its number, counted from 1, the committed transactions, and
    /// their p99 in milliseconds.
    pub after_minute: &'a (dyn Fn(usize, usize, f64) + Sync),
}

/// The server's use of resources at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the soak began.
    pub at_s: f64,
    /// Private memory of the server's process.
    pub memory_bytes: u64,
    /// Length of all files in the server's directory.
    pub disk_bytes: u64,
}

/// The result of a soak.
#[derive(Debug, Clone)]
pub struct Soaked {
    /// How long it lasted, in seconds.
    pub seconds: f64,
    /// All samples of the server, in order.
    pub samples: Vec<Sample>,
    /// The p99 latency of each whole minute in milliseconds, from due to answered.
    pub p99_ms: Vec<f64>,
    /// Whether memory, disk space and latency have grown.
    pub trends: Vec<Trend>,
    /// The judgement over all minutes together.
    pub judgement: Judgement,
    /// The file with the history of the first minute in which a rule was broken.
    pub history: Option<PathBuf>,
}

impl Soaked {
    /// Whether the soak was long enough to tell growth from noise.
    pub fn is_long(&self) -> bool {
        is_long(self.seconds)
    }

    /// Whether no rule was broken and, if the soak was long enough, nothing grew.
    pub fn holds(&self) -> bool {
        let flat = || self.trends.iter().all(|trend| trend.flat);
        self.judgement.verdict.holds() && (!self.is_long() || flat())
    }
}

/// The reason for which a soak has no result.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// The server did not start, or ended.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// An operation that must succeed failed.
    #[error("the server does not serve: {0}")]
    Database(#[from] dyno_txn_api::Error),
    /// The history could not be written.
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// Runs the soak and judges it.
///
/// # Errors
/// See [`SoakError`]. A broken rule is not an error; it is part of the result.
pub fn run(options: &Options<'_>) -> Result<Soaked, SoakError> {
    let server = Server::start(options.start, options.folder)?;
    let db = (options.connect)(server.address(), false)?;
    let tables = Tables::create(&*db, SHAPE.registers / 8)?;
    let began = Instant::now();
    let (mut samples, mut p99_ms) = (Vec::new(), Vec::new());
    let (mut judgement, mut history) = (Drive::new(Plan::default()).judge(), None);
    for minute in 1.. {
        let left = options.length.saturating_sub(began.elapsed());
        if left.is_zero() || options.stop.load(Ordering::Relaxed) {
            break;
        }
        wipe(&*db, tables)?;
        let mut drive = Drive::new(plan(options, minute));
        drive.open(&*db, tables, PATIENCE)?;
        // Before this the client reads and opens accounts without a pace, which is not part of the
        // latency.
        let from_ns = drive.now_ns();
        samples.append(&mut work(
            options,
            &server,
            (&mut drive, tables),
            (began, left),
        ));
        // Latency is taken before `read_all`, whose scan of everything would be the slowest
        // transaction.
        let latency = latency_ms(drive.history(), from_ns, pace(options));
        drive.read_all(&*db, tables, PATIENCE)?;
        let judged = drive.judge();
        (options.after_minute)(minute, judged.committed, latency);
        // The last minute may be only seconds long, too few for a p99.
        if left >= MINUTE {
            p99_ms.push(latency);
        }
        // Only the first broken minute is kept. Later ones often follow from it, and each history
        // is large.
        if !judged.verdict.holds() && history.is_none() {
            let path = options.folder.join("history.ndjson");
            let about = format!("soak, seed {}, minute {minute}", options.seed);
            drive.history().save(&path, &about)?;
            history = Some(path);
        }
        add(&mut judgement, judged);
    }
    Ok(Soaked {
        seconds: began.elapsed().as_secs_f64(),
        trends: trends(&samples, &p99_ms),
        samples,
        p99_ms,
        judgement,
        history,
    })
}

fn plan(options: &Options<'_>, minute: usize) -> Plan {
    Plan {
        seed: options.seed.wrapping_add(minute as u64),
        clients: options.clients,
        shape: SHAPE,
        pace: pace(options),
        ..Plan::default()
    }
}

fn pace(options: &Options<'_>) -> Duration {
    Duration::from_secs_f64(f64::from(options.clients) / f64::from(options.rate.max(1)))
}

/// Empties the tables, because the history of the next minute begins with empty ones.
fn wipe(db: &dyn Database, tables: Tables) -> Result<(), dyno_txn_api::Error> {
    let rows = [
        (ACCOUNTS, SHAPE.accounts),
        (REGISTERS, SHAPE.registers),
        (LISTS, SHAPE.lists),
    ];
    let keys = rows.into_iter();
    let keys = keys.flat_map(|(table, rows)| (0..rows).map(move |id| Key::new(table, id)));
    let deletes: Vec<_> = keys.map(|key| Operation::delete(tables.key(key))).collect();
    db.transact(|t| t.run(&deletes).map(drop))
}

/// Lets the clients work for a minute, or for what is left of the soak, and samples the server
/// meanwhile.
fn work(
    options: &Options<'_>,
    server: &Server,
    (drive, tables): (&mut Drive, Tables),
    (began, left): (Instant, Duration),
) -> Vec<Sample> {
    let over = AtomicBool::new(false);
    let until = Instant::now() + left.min(MINUTE);
    let connected = AtomicU64::new(0);
    let connect = || {
        let number = connected.fetch_add(1, Ordering::Relaxed);
        (options.connect)(server.address(), number.is_multiple_of(2))
    };
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut samples, mut next) = (Vec::new(), Instant::now());
            while Instant::now() < until && !options.stop.load(Ordering::Relaxed) {
                if Instant::now() >= next {
                    next += LOOK;
                    // A server that has ended cannot be sampled. Its clients then fail, and report
                    // it.
                    samples.extend(sample(options, server, began));
                }
                thread::sleep(TICK);
            }
            // The watcher ends the round, so that clients and samples end together.
            over.store(true, Ordering::Release);
            samples
        });
        drive.round(connect, tables, &over);
        match watcher.join() {
            Ok(samples) => samples,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn sample(options: &Options<'_>, server: &Server, began: Instant) -> Option<Sample> {
    Some(Sample {
        at_s: began.elapsed().as_secs_f64(),
        memory_bytes: private_bytes(server.pid())?,
        disk_bytes: disk_bytes(&server::data(options.folder)),
    })
}

/// The length of all files below a folder. Files that are removed meanwhile do not count.
fn disk_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => disk_bytes(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// The p99 latency of the transactions that committed after a moment. Each client's transactions
/// are due at a steady pace, and no transaction begins before it is due. So the one that began
/// earliest relative to the pace tells when all others were due. That need not be the first one,
/// because a client connects before it.
fn latency_ms(history: &History, from_ns: u64, pace: Duration) -> f64 {
    let mut clients: BTreeMap<u32, Vec<&Transaction>> = BTreeMap::new();
    // The history is in the order of the beginnings, so each client's list is, too.
    for done in &history.transactions {
        if done.begin_ns >= from_ns {
            clients.entry(done.process).or_default().push(done);
        }
    }
    let pace_ns = pace.as_nanos() as i64;
    let mut all = Vec::new();
    for transactions in clients.values() {
        let begins = (0..).zip(transactions.iter());
        let first_due_ns = begins.map(|(at, done)| done.begin_ns as i64 - at * pace_ns);
        let first_due_ns = first_due_ns.min().unwrap_or_default();
        for (at, done) in (0..).zip(transactions) {
            if let (Outcome::Ok, Some(end_ns)) = (done.outcome, done.end_ns) {
                all.push((end_ns as i64 - (first_due_ns + at * pace_ns)) as f64 / 1e6);
            }
        }
    }
    p99(&mut all)
}

fn trends(samples: &[Sample], p99_ms: &[f64]) -> Vec<Trend> {
    let of = |what: fn(&Sample) -> u64| -> Vec<f64> {
        samples.iter().map(|sample| what(sample) as f64).collect()
    };
    let memory = of(|sample| sample.memory_bytes);
    let disk = of(|sample| sample.disk_bytes);
    vec![
        Trend::from_values("memory of server, bytes", &memory, MEMORY_GRAIN),
        Trend::from_values("disk, bytes", &disk, DISK_GRAIN),
        Trend::from_values("p99 of a minute, ms", p99_ms, LATENCY_GRAIN_MS),
    ]
}

fn add(all: &mut Judgement, one: Judgement) {
    all.verdict.merge(one.verdict);
    all.committed += one.committed;
    all.failed += one.failed;
    all.unknown += one.unknown;
    all.audits += one.audits;
    all.replayed = one.replayed;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The p99 from the fifth millisecond on, transactions being due every ten; each is a begin and
    /// an end.
    fn found(times_ms: &[(u64, u64)]) -> f64 {
        let mut history = History::default();
        for (id, &(begin_ms, end_ms)) in (1..).zip(times_ms) {
            history.transactions.push(Transaction {
                id,
                process: 1,
                begin_ns: begin_ms * 1_000_000,
                end_ns: Some(end_ms * 1_000_000),
                outcome: Outcome::Ok,
                timestamp: None,
                ops: Vec::new(),
            });
        }
        latency_ms(&history, 5_000_000, Duration::from_millis(10))
    }

    #[test]
    fn latency_counts_from_when_a_transaction_was_due() {
        // Due at 10, 20 and 30; the second was slow, so the third began late.
        assert_eq!(found(&[(1, 2), (10, 11), (20, 70), (70, 71)]), 50.0);
        assert_eq!(found(&[(1, 2), (10, 11)]), 1.0);
    }

    #[test]
    fn a_client_that_connects_late_hides_no_latency() {
        // Due at 10, 20, 30 and 40, and connected at 26.
        assert_eq!(found(&[(26, 27), (27, 28), (30, 33), (40, 42)]), 17.0);
    }
}
