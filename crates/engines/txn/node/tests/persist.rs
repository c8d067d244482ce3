//! Logs in other processes' memory: a server that is killed finds there all that it answered, and
//! while a process that keeps them is away writes are refused, in words.

mod scene;

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use dyno_txn_api::{Code, Database, Error, Options, TableDef, TableId, Target, Transact};
use dyno_txn_node::{Durability, OpenOptions, Role, ServeOptions, open, serve};

const ROLE: &str = "DYNO_TXN_NODE_PERSIST_ROLE";
const DATA: &str = "DYNO_TXN_NODE_PERSIST_DATA";
const AT: &str = "DYNO_TXN_NODE_PERSIST_AT";

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

/// The server or keeper, when this program is run as one by the tests below.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let variable = |name| std::env::var(name).unwrap_or_default();
    let mut server = ServeOptions::new(variable(DATA), variable(AT));
    server.engine = match role.as_str() {
        "persist" => OpenOptions {
            memory_bytes: 64 << 20,
            cores: Vec::new(),
            ..options()
        },
        addresses => OpenOptions {
            durability: Durability::RemoteMemory,
            persist: addresses.split(',').map(str::to_owned).collect(),
            ..options()
        },
    };
    if role == "persist" {
        server.role = Role::Persist;
    }
    let served = serve(server);
    match &served {
        Ok(server) => println!("listens at {}", server.address()),
        Err(error) => println!("refuses: {error}"),
    }
    std::thread::sleep(Duration::from_secs(120));
}

fn options() -> OpenOptions {
    OpenOptions {
        cores: vec![0, 0],
        partitions: Some(3),
        checkpoint_bytes: 64 << 10,
        ..scene::options()
    }
}

fn start(role: &str, data: &Path, at: &str) -> Result<Process, String> {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture"])
        .envs([(ROLE, role), (AT, at)])
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
    let address = match found {
        Some(Ok(address)) => address,
        other => {
            child.kill().expect("it is killed");
            child.wait().expect("it ends");
            return Err(other.and_then(Result::err).unwrap_or_default());
        }
    };
    Ok(Process {
        child,
        address,
        _output: lines,
    })
}

fn connect(server: &Process) -> Box<dyn Database> {
    open(&Target::Dyno(vec![server.address.clone()]), options()).expect("it connects")
}

fn put(db: &dyn Database, table: TableId, number: u64) -> Result<(), Error> {
    let options = Options {
        deadline: Duration::from_secs(5),
        attempts: 1,
        ..Options::default()
    };
    let value = [7; 900];
    db.transact_with(&options, |t| t.put(table, &number.to_be_bytes(), &value))
        .map(drop)
}

fn rows(db: &dyn Database, table: TableId) -> u64 {
    let there = |number: u64| {
        let got = db.transact(|t| t.get(table, &number.to_be_bytes()));
        got.expect("it reads").is_some()
    };
    (0..).take_while(|&number| there(number)).count() as u64
}

/// Tries until it is done.
fn put_at_last(db: &dyn Database, table: TableId, number: u64) {
    let began = Instant::now();
    while let Err(error) = put(db, table, number) {
        assert!(began.elapsed() < Duration::from_secs(60), "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_killed_server_finds_in_other_memory_what_it_answered() {
    let at = tempfile::tempdir().expect("a directory");
    let data = at.path().join("db");
    let keep = || start("persist", Path::new(""), "127.0.0.1:0").expect("it keeps");
    let keepers = [keep(), keep()];
    let both = format!("{},{}", keepers[0].address, keepers[1].address);
    let serve = |which: &str| start(which, &data, "127.0.0.1:0");

    let server = serve(&both).expect("it serves");
    let db = connect(&server);
    assert_eq!(db.describe().expect("it says").durability, "remote-memory");
    let table = db.create_table(&TableDef::hash("t", 0)).expect("a table");
    // Enough for some checkpoints.
    (0..400).for_each(|number| put(&*db, table, number).expect("it is answered"));
    drop((db, server));

    let server = serve(&both).expect("it recovers");
    let db = connect(&server);
    assert_eq!(rows(&*db, table), 400);
    put(&*db, table, 400).expect("it goes on");

    // One of them dies: nothing is answered that is not in both.
    let [first, second] = keepers;
    let (gone, port) = (first.address.clone(), first.address.clone());
    drop(first);
    let refused = put(&*db, table, 401).expect_err("one is away");
    let codes = [Code::Unavailable, Code::OutcomeUnknown];
    assert!(codes.contains(&refused.kind()), "{refused}");
    std::thread::sleep(Duration::from_millis(500));
    let refused = put(&*db, table, 402).expect_err("one is still away");
    assert_eq!(refused.kind(), Code::Unavailable, "{refused}");
    assert!(refused.text().contains(&gone), "{refused}");
    // A new one in its place is brought up from the server's memory, and has all when the other
    // dies.
    let first = start("persist", Path::new(""), &port).expect("it keeps again");
    put_at_last(&*db, table, 401);
    put_at_last(&*db, table, 402);
    drop((db, server, second));

    let refused = serve(&both).err().expect("one of the two is not there");
    assert!(refused.contains("persist process"), "{refused}");
    let server = serve(&first.address).expect("the other one has all");
    let db = connect(&server);
    assert_eq!(rows(&*db, table), 403);
    put(&*db, table, 403).expect("it goes on with one");
    drop((db, server, first));

    // Empty memory is not taken for an empty database.
    let empty = start("persist", Path::new(""), &port).expect("it keeps again");
    let refused = serve(&empty.address).err().expect("all is lost");
    assert!(
        refused.contains("none of the persist processes"),
        "{refused}"
    );
}

#[test]
fn who_has_rows_and_who_keeps_logs_are_not_taken_for_each_other() {
    let at = tempfile::tempdir().expect("a directory");
    let keeper = start("persist", Path::new(""), "127.0.0.1:0").expect("it keeps");
    let wrong = open(&Target::Dyno(vec![keeper.address.clone()]), options());
    let wrong = wrong.err().expect("it has no rows");
    assert_eq!(wrong.kind(), Code::NotSupported, "{wrong}");

    let data = at.path().join("one");
    let server = start(&keeper.address, &data, "127.0.0.1:0").expect("it serves");
    let other = at.path().join("other");
    let refused = start(&server.address, &other, "127.0.0.1:0")
        .err()
        .expect("it keeps none");
    assert!(refused.contains("hello"), "{refused}");
}
