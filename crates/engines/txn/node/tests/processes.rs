//! A database in three processes with two oracles beside them: transactions over all of them, any process killed at
//! any time and started again, money neither made nor lost.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyno_sim::Random;
use dyno_txn_api::{
    Code, Database, Error, Key, Operation, Options, Retry, Scan, TableDef, TableId, Target,
    Transact,
};
use dyno_txn_node::{OpenOptions, Role, ServeOptions, Share, open, serve};

const ROLE: &str = "DYNO_TXN_NODE_PROCESSES_ROLE";
const DATA: &str = "DYNO_TXN_NODE_PROCESSES_DATA";
const JOIN: &str = "DYNO_TXN_NODE_PROCESSES_JOIN";
const AT: &str = "DYNO_TXN_NODE_PROCESSES_AT";
const PARTS: u32 = 3;
const ACCOUNTS: u64 = 30;
const EACH: u64 = 100;
const LONG: Duration = Duration::from_secs(90);

fn options() -> OpenOptions {
    OpenOptions {
        cores: vec![0, 0],
        partitions: Some(7),
        segment_bytes: 1 << 20,
        checkpoint_bytes: 200 << 10,
        spin: Duration::from_micros(20),
        ..OpenOptions::default()
    }
}

/// A process, killed when it is dropped.
struct Process {
    child: Child,
    address: String,
    /// What it prints is kept open: it would end where it could not print.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended by itself is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process, when this program is run as one by the tests below.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let variable = |name| std::env::var(name).unwrap_or_default();
    let mut server = ServeOptions::new(variable(DATA), variable(AT));
    server.engine = options();
    match role.parse() {
        Ok(part) => {
            server.role = Role::Partitions;
            server.share = Some(Share {
                part,
                of: PARTS,
                join: variable(JOIN).split(',').map(str::to_owned).collect(),
                advertise: None,
            });
        }
        Err(_) => {
            server.role = Role::Oracle;
            server.engine.cores = Vec::new();
        }
    }
    let served = serve(server);
    match &served {
        Ok(server) => println!("listens at {}", server.address()),
        Err(error) => println!("refuses: {error}"),
    }
    std::thread::sleep(Duration::from_secs(300));
}

fn start(role: &str, data: &Path, join: &str, at: &str) -> Result<Process, String> {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture"])
        .envs([(ROLE, role), (JOIN, join), (AT, at)])
        .env(DATA, data)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let mut lines = output.lines();
    let found = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let refused = line
            .split_once("refuses: ")
            .map(|(_, why)| Err(why.to_owned()));
        let listens = line
            .split_once("listens at ")
            .map(|(_, at)| Ok(at.to_owned()));
        refused.or(listens)
    });
    match found {
        Some(Ok(address)) => Ok(Process {
            child,
            address,
            _output: lines,
        }),
        other => {
            child.kill().expect("it is killed");
            child.wait().expect("it ends");
            Err(other.and_then(Result::err).unwrap_or_default())
        }
    }
}

/// All processes of a database.
struct Cluster {
    at: tempfile::TempDir,
    oracles: Vec<Option<Process>>,
    oracles_at: Vec<String>,
    parts: Vec<Option<Process>>,
}

impl Cluster {
    fn start() -> Self {
        let at = tempfile::tempdir().expect("a directory");
        let oracle = || start("oracle", Path::new(""), "", "127.0.0.1:0").expect("it serves");
        let oracles = vec![oracle(), oracle()];
        let mut cluster = Self {
            at,
            oracles_at: oracles.iter().map(|one| one.address.clone()).collect(),
            oracles: oracles.into_iter().map(Some).collect(),
            parts: (0..PARTS).map(|_| None).collect(),
        };
        (0..PARTS as usize).for_each(|part| cluster.restart(part));
        cluster
    }

    /// Processes 0 to 2 have partitions, 3 and 4 are oracles.
    fn kill(&mut self, which: usize) {
        match which.checked_sub(PARTS as usize) {
            None => drop(self.parts[which].take()),
            Some(oracle) => drop(self.oracles[oracle].take()),
        }
    }

    fn restart(&mut self, which: usize) {
        match which.checked_sub(PARTS as usize) {
            None => {
                let data = self.at.path().join(format!("part-{which}"));
                let join = self.oracles_at.join(",");
                let started = start(&which.to_string(), &data, &join, "127.0.0.1:0");
                self.parts[which] = Some(started.expect("it serves"));
            }
            Some(oracle) => {
                let at = &self.oracles_at[oracle];
                let started = start("oracle", Path::new(""), "", at);
                self.oracles[oracle] = Some(started.expect("it serves"));
            }
        }
    }

    /// Through one address.
    fn connect(&self, address: &str) -> Box<dyn Database> {
        let target = Target::Dyno(vec![address.to_owned()]);
        at_last(|| open(&target, options()))
    }

    fn address(&self, part: usize) -> String {
        let process = self.parts[part].as_ref();
        process
            .map(|process| process.address.clone())
            .expect("it runs")
    }
}

/// Tries until it is done, for a while.
fn at_last<T>(mut act: impl FnMut() -> Result<T, Error>) -> T {
    let began = Instant::now();
    loop {
        match act() {
            Ok(done) => return done,
            Err(error) => assert!(began.elapsed() < LONG, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| {
        u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
    })
}

fn within(seconds: u64) -> Options {
    Options {
        deadline: Duration::from_secs(seconds),
        ..Options::default()
    }
}

/// Moves money, and notes in a row of the thread's own how many transfers it has done.
fn transfer(
    db: &dyn Database,
    table: TableId,
    random: &mut Random,
    (thread, count): (u64, u64),
) -> Result<(), Error> {
    let (from, to) = (random.bits() % ACCOUNTS, random.bits() % ACCOUNTS);
    db.transact_with(&within(2), |t| {
        let keys = [from.to_be_bytes(), to.to_be_bytes()];
        let found = t.get_many(&[(table, &keys[0]), (table, &keys[1])])?;
        let [a, b] = [0, 1].map(|at| number(found[at].clone()));
        if from != to && a > 0 {
            t.put(table, &keys[0], &(a - 1).to_le_bytes())?;
            t.put(table, &keys[1], &(b + 1).to_le_bytes())?;
        }
        t.put(table, &(1000 + thread).to_be_bytes(), &count.to_le_bytes())
    })
    .map(drop)
}

fn total(db: &dyn Database, table: TableId) -> Result<u64, Error> {
    let keys: Vec<_> = (0..ACCOUNTS).map(u64::to_be_bytes).collect();
    let keys: Vec<_> = keys.iter().map(|key| (table, &key[..])).collect();
    db.transact_with(&within(5), |t| {
        let found = t.get_many(&keys)?;
        Ok(found.into_iter().map(number).sum::<u64>())
    })
    .map(|sum| sum.value)
}

#[test]
fn any_process_may_be_killed_and_money_stays() {
    let mut cluster = Cluster::start();
    let db = cluster.connect(&cluster.address(1));
    let table = at_last(|| db.create_table(&TableDef::hash("accounts", 0)));
    let fill = || {
        let put = |n: u64| Operation::put(Key::new(table, n.to_be_bytes()), EACH.to_le_bytes());
        db.one_shot((0..ACCOUNTS).map(put).collect())
    };
    at_last(fill);
    assert_eq!(db.describe().expect("it says").partitions, 7);

    let (acked, tried) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut before = 0;
    // Each process once: both oracles, and all that have partitions.
    for which in [3, 0, 4, 1, 2] {
        let over = AtomicBool::new(false);
        let waited = std::thread::scope(|scope| {
            for thread in 0..2 {
                let (db, over, acked, tried) = (&db, &over, &acked, &tried);
                scope.spawn(move || {
                    let mut random = Random::new(which as u64 * 100 + thread);
                    while !over.load(Ordering::Acquire) {
                        let count = tried.fetch_add(1, Ordering::AcqRel) + 1;
                        match transfer(&**db, table, &mut random, (thread, count)) {
                            Ok(()) => drop(acked.fetch_add(1, Ordering::AcqRel)),
                            Err(error) if error.retry() == Retry::Never => panic!("{error}"),
                            Err(_) => {}
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(300));
            cluster.kill(which);
            std::thread::sleep(Duration::from_millis(300));
            cluster.restart(which);
            let began = Instant::now();
            let mark = acked.load(Ordering::Acquire);
            while acked.load(Ordering::Acquire) < mark + 10 && began.elapsed() < LONG {
                std::thread::sleep(Duration::from_millis(20));
            }
            over.store(true, Ordering::Release);
            began.elapsed()
        });
        let now = acked.load(Ordering::Acquire);
        assert!(
            now >= before + 10,
            "process {which}: nothing was answered after it came back"
        );
        println!(
            "process {which}: {} transfers, {:?} until it went on",
            now - before,
            waited
        );
        before = now;
        assert_eq!(
            at_last(|| total(&*db, table)),
            ACCOUNTS * EACH,
            "process {which}"
        );
    }
    // The same through any other address, an oracle's too.
    let other = cluster.connect(&cluster.oracles_at[0]);
    assert_eq!(at_last(|| total(&*other, table)), ACCOUNTS * EACH);
}

#[test]
fn ranges_lie_where_their_splits_say_and_shares_are_guarded() {
    let cluster = Cluster::start();
    let db = cluster.connect(&cluster.oracles_at[1]);
    let splits: Vec<Vec<u8>> = (1..7u8).map(|n| vec![n * 10]).collect();
    let table = at_last(|| db.create_table(&TableDef::range("rows", splits.clone())));
    for n in 0..70u8 {
        at_last(|| db.transact_with(&within(5), |t| t.put(table, &[n], &[n])));
    }
    let page = at_last(|| db.transact_with(&within(5), |t| t.scan(&Scan::all(table)))).value;
    let keys: Vec<_> = page.rows.iter().map(|row| row.key[0]).collect();
    assert_eq!(keys, (0..70).collect::<Vec<_>>());
    let back = Scan::range(table, vec![15], Some(vec![45])).backward();
    let page = at_last(|| db.transact_with(&within(5), |t| t.scan(&back))).value;
    let keys: Vec<_> = page.rows.iter().map(|row| row.key[0]).collect();
    assert_eq!(keys, (15..45).rev().collect::<Vec<_>>());

    let join = cluster.oracles_at.join(",");
    let taken = cluster.at.path().join("part-1");
    let refused = start("2", &taken, &join, "127.0.0.1:0")
        .err()
        .expect("it is part 1");
    assert!(
        refused.contains("part 1 of 3") || refused.contains("another process"),
        "{refused}"
    );
    let gone = Target::Dyno(vec!["127.0.0.1:1".to_owned()]);
    let error = open(&gone, options()).err().expect("nobody is there");
    assert_eq!(error.kind(), Code::Unavailable);
}
