//! A database in three processes with two oracles beside them: transactions over all of them, any
//! process killed at any time and started again, money neither made nor lost.

mod scene;

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyno_sim::Random;
use dyno_txn_api::{
    Code, Database, Error, Key, Operation, Options, Request, Retry, Scan, TableDef, TableId,
    Target, Transact,
};
use dyno_txn_node::{Durability, OpenOptions, Role, ServeOptions, Share, backup, open, serve};
use scene::number;

const ROLE: &str = "DYNO_TXN_NODE_PROCESSES_ROLE";
const DATA: &str = "DYNO_TXN_NODE_PROCESSES_DATA";
const JOIN: &str = "DYNO_TXN_NODE_PROCESSES_JOIN";
const AT: &str = "DYNO_TXN_NODE_PROCESSES_AT";
const DURABILITY: &str = "DYNO_TXN_NODE_PROCESSES_DURABILITY";
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
        ..scene::options()
    }
}

/// A process, killed when it is dropped.
struct Process {
    child: Child,
    address: String,
    /// What it prints is kept open: it would end where it could not print.
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Why it stopped by itself.
    fn stopped(mut self) -> String {
        let lines = self.output.by_ref().map_while(Result::ok);
        let mut reasons = lines.filter_map(|line| {
            let (_, why) = line.split_once("stopped: ")?;
            Some(why.to_owned())
        });
        reasons.next().expect("it says why")
    }
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
    server.engine.durability = variable(DURABILITY).parse().expect("one of three");
    match role.parse() {
        Ok(part) => {
            server.role = Role::Partitions;
            server.backups = Some(Path::new(&variable(DATA)).with_extension("copies"));
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
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(300) {
        if let Some(why) = served.as_ref().ok().and_then(|server| server.failure()) {
            println!("stopped: {why}");
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(role: &str, data: &Path, join: &str, at: &str) -> Result<Process, String> {
    start_with(Durability::Fsync, role, data, join, at)
}

fn start_with(
    durability: Durability,
    role: &str,
    data: &Path,
    join: &str,
    at: &str,
) -> Result<Process, String> {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture"])
        .envs([(ROLE, role), (JOIN, join), (AT, at)])
        .env(DURABILITY, durability.name())
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
            output: lines,
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
    durability: Durability,
    oracles: Vec<Option<Process>>,
    oracles_at: Vec<String>,
    parts: Vec<Option<Process>>,
}

impl Cluster {
    fn start() -> Self {
        Self::start_with(Durability::Fsync)
    }

    fn start_with(durability: Durability) -> Self {
        let at = tempfile::tempdir().expect("a directory");
        let oracle = || start("oracle", Path::new(""), "", "127.0.0.1:0").expect("it serves");
        let oracles = vec![oracle(), oracle()];
        let mut cluster = Self {
            at,
            durability,
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
                let started = self.start_part(which, &format!("part-{which}"));
                self.parts[which] = Some(started.expect("it serves"));
            }
            Some(oracle) => {
                let at = &self.oracles_at[oracle];
                let started = start("oracle", Path::new(""), "", at);
                self.oracles[oracle] = Some(started.expect("it serves"));
            }
        }
    }

    /// A process with a share of the partitions, in this directory.
    fn start_part(&self, which: usize, name: &str) -> Result<Process, String> {
        let (data, join) = (self.at.path().join(name), self.oracles_at.join(","));
        let how = self.durability;
        start_with(how, &which.to_string(), &data, &join, "127.0.0.1:0")
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
        let [a, b] = [0, 1].map(|at| number(found.get(at).map(Vec::from)));
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
        Ok(found
            .iter()
            .map(|row| number(row.map(Vec::from)))
            .sum::<u64>())
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

/// Processes call each other when they have something to say, which must not be lost meanwhile.
#[test]
fn the_first_transactions_over_several_processes_are_answered_at_once() {
    let cluster = Cluster::start();
    let dbs: Vec<_> = (0..PARTS as usize)
        .map(|part| cluster.connect(&cluster.address(part)))
        .collect();
    let table = at_last(|| dbs[0].create_table(&TableDef::hash("rows", 0)));
    for (round, db) in dbs.iter().cycle().take(12).enumerate() {
        let put = |n: u64| {
            let key = Key::new(table, (n * 1000 + round as u64).to_be_bytes());
            Operation::put(key, b"row")
        };
        let request = Request::Operations((0..20).map(put).collect());
        let done = db.execute(request, &within(10));
        assert!(done.is_ok(), "round {round}: {done:?}");
    }
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
    let whole = Target::Dyno(vec![cluster.address(0)]);
    let error = backup(&whole, options(), "monday").expect_err("not of one moment");
    assert_eq!(error.kind(), Code::NotSupported, "{error}");
    assert!(error.text().contains("several processes"), "{error}");
    let gone = Target::Dyno(vec!["127.0.0.1:1".to_owned()]);
    let error = open(&gone, options()).err().expect("nobody is there");
    assert_eq!(error.kind(), Code::Unavailable);
}

/// The other processes still have their rows, so one that begins with none must not answer as if
/// there were none.
#[test]
fn a_process_whose_rows_were_in_memory_alone_does_not_come_back_without_them() {
    let mut cluster = Cluster::start_with(Durability::Memory);
    let db = cluster.connect(&cluster.address(0));
    let table = at_last(|| db.create_table(&TableDef::hash("rows", 0)));
    let keys: Vec<_> = (0..ACCOUNTS).map(u64::to_be_bytes).collect();
    for key in &keys {
        at_last(|| db.transact_with(&within(5), |t| t.put(table, key, b"kept")));
    }
    drop(db);
    cluster.kill(1);
    let refused = cluster.start_part(1, "part-1").err().expect("no rows");
    assert!(
        refused.contains("part 1 of 3") && refused.contains("start all anew"),
        "{refused}"
    );
    // Nor does an empty directory stand in for it.
    let other = cluster.start_part(1, "part-1-other").expect("it is new");
    let stopped = other.stopped();
    assert!(
        stopped.contains("part 1: another directory") && stopped.contains("start all anew"),
        "{stopped}"
    );
    // What the others have they still answer, and of what is gone nobody says that it never was.
    let db = cluster.connect(&cluster.address(0));
    let mut lost = 0;
    for key in &keys {
        match db.transact_with(&within(1), |t| t.get(table, key)) {
            Ok(found) => assert_eq!(found.value.as_deref(), Some(&b"kept"[..])),
            Err(_) => lost += 1,
        }
    }
    assert!((1..ACCOUNTS).contains(&lost), "{lost} of {ACCOUNTS}");
}

#[test]
fn an_address_that_others_cannot_call_is_not_told_to_them() {
    let at = tempfile::tempdir().expect("a directory");
    let serve_at = |listen: &str, advertise: Option<&str>| {
        let mut options = ServeOptions::new(at.path().join("part"), listen);
        options.role = Role::Partitions;
        options.token = Some("a-secret-of-this-test".to_owned());
        options.share = Some(Share {
            part: 0,
            of: 2,
            join: vec!["127.0.0.1:1".to_owned()],
            advertise: advertise.map(str::to_owned),
        });
        serve(options)
    };
    for (listen, advertise) in [
        ("0.0.0.0:0", None),
        ("[::]:0", None),
        ("127.0.0.1:0", Some("0.0.0.0:7421")),
    ] {
        let error = serve_at(listen, advertise)
            .err()
            .expect("nobody reaches it");
        assert_eq!(error.kind(), Code::BadArgument, "{error}");
        assert!(error.text().contains("advertise"), "{error}");
    }
    assert!(!at.path().join("part").exists(), "nothing was begun");
    drop(serve_at("0.0.0.0:0", Some("localhost:7421")).expect("it is named"));
}
