//! A server that is killed while it works: what was answered is there afterwards, money is neither
//! made nor lost.

mod scene;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dyno_sim::Random;
use dyno_txn_api::{
    Code, Database, Error, Key, Operation, Options, Request, Retry, TableDef, TableId, Target,
    Transact,
};
use dyno_txn_node::{OpenOptions, ServeOptions, open, serve};
use scene::number;

const DATA: &str = "DYNO_TXN_NODE_KILL_DATA";
const ACCOUNTS: u64 = 40;
const EACH: u64 = 1000;
const THREADS: u64 = 3;
const ROUNDS: u64 = 6;

fn options() -> OpenOptions {
    OpenOptions {
        cores: vec![0, 0],
        partitions: Some(3),
        segment_bytes: 1 << 20,
        checkpoint_bytes: 300 << 10,
        ..scene::options()
    }
}

/// The server, when this program is run as one by the test below.
#[test]
fn child() {
    let Ok(data) = std::env::var(DATA) else {
        return;
    };
    let server = ServeOptions {
        engine: options(),
        ..ServeOptions::new(data, "127.0.0.1:0")
    };
    let server = serve(server).expect("it serves");
    println!("listens at {}", server.address());
    std::thread::sleep(Duration::from_secs(120));
}

fn start(data: &Path) -> (Child, Box<dyn Database>) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture"])
        .env(DATA, data)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let address = output.lines().map_while(Result::ok).find_map(|line| {
        let (_, address) = line.split_once("listens at ")?;
        Some(address.to_owned())
    });
    let target = Target::Dyno(vec![address.expect("it listens")]);
    (child, open(&target, options()).expect("it connects"))
}

/// Moves money, and notes in a row of the thread's own how many transfers it has done.
fn transfer(
    db: &dyn Database,
    table: TableId,
    random: &mut Random,
    (thread, count): (u64, u64),
) -> Result<(), Error> {
    let (from, to) = (random.bits() % ACCOUNTS, random.bits() % ACCOUNTS);
    let options = Options {
        deadline: Duration::from_secs(2),
        ..Options::default()
    };
    db.transact_with(&options, |t| {
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

#[test]
fn a_killed_server_keeps_what_it_answered() {
    let at = tempfile::tempdir().expect("a directory");
    let data = at.path().join("db");
    let (mut child, db) = start(&data);
    let table = db
        .create_table(&TableDef::hash("accounts", 0))
        .expect("a table");
    let fill =
        (0..ACCOUNTS).map(|n| Operation::put(Key::new(table, n.to_be_bytes()), EACH.to_le_bytes()));
    db.one_shot(fill.collect()).expect("accounts");
    drop(db);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");

    let acked: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let tried: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    for round in 0..ROUNDS {
        let (mut child, db) = start(&data);
        check(&*db, table, &acked, &tried);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (db, over, acked, tried) = (&db, &over, &acked, &tried);
                scope.spawn(move || {
                    let mut random = Random::new(round * 100 + thread);
                    while !over.load(Ordering::Acquire) {
                        let count = tried[thread as usize].fetch_add(1, Ordering::AcqRel) + 1;
                        match transfer(&**db, table, &mut random, (thread, count)) {
                            Ok(()) => acked[thread as usize].store(count, Ordering::Release),
                            Err(error) if error.retry() == Retry::Never => panic!("{error}"),
                            Err(_) => {}
                        }
                    }
                });
            }
            let wait = Random::new(round).below(300) as u64;
            std::thread::sleep(Duration::from_millis(100 + wait));
            child.kill().expect("it is killed");
            over.store(true, Ordering::Release);
        });
        child.wait().expect("it ends");
        let gone = db.execute(Request::Operations(Vec::new()), &Options::default());
        assert!(matches!(
            gone.expect_err("gone").kind(),
            Code::Unavailable | Code::OutcomeUnknown
        ));
    }
    let (mut child, db) = start(&data);
    check(&*db, table, &acked, &tried);
    let acked = acked.iter().map(|count| count.load(Ordering::Acquire));
    assert!(
        acked.sum::<u64>() > 0,
        "no transfer was answered in any round"
    );
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
}

fn check(db: &dyn Database, table: TableId, acked: &[AtomicU64], tried: &[AtomicU64]) {
    let keys: Vec<_> = (0..ACCOUNTS).map(u64::to_be_bytes).collect();
    let keys: Vec<_> = keys.iter().map(|key| (table, &key[..])).collect();
    let sum = db.transact(|t| {
        let found = t.get_many(&keys)?;
        Ok(found
            .iter()
            .map(|row| number(row.map(Vec::from)))
            .sum::<u64>())
    });
    assert_eq!(sum.expect("it reads"), ACCOUNTS * EACH);
    for thread in 0..acked.len() {
        let key = (1000 + thread as u64).to_be_bytes();
        let found = number(db.transact(|t| t.get(table, &key)).expect("it reads"));
        let range = acked[thread].load(Ordering::Acquire)..=tried[thread].load(Ordering::Acquire);
        assert!(
            range.contains(&found),
            "thread {thread}: {found} not in {range:?}"
        );
    }
}
