//! Procedures, pipelines and the ways in which operations travel.

mod scene;

use std::time::Duration;

use dyno_txn_api::{
    Change, Code, Database, Error, Key, Operation, Operations, Options, Procedures, Request,
    TableDef, Target, Transact,
};
use dyno_txn_node::{Durability, OpenOptions, open};
use scene::number;

/// `move FROM TO`: one unit from a row to another one, which may lie on another partition.
fn procedures() -> Procedures {
    let mut procedures = Procedures::new();
    let shift = |t: &mut dyn Operations, arguments: &[u8]| -> Result<Vec<u8>, Error> {
        let table = t.table("units")?;
        let (from, to) = arguments.split_at(8);
        let found = t.get_many(&[(table, from), (table, to)])?;
        let [a, b] = [0, 1].map(|at| number(found.get(at).map(Vec::from)));
        if a == 0 {
            return Err(Error::user_abort("nothing is left there"));
        }
        t.put(table, from, &(a - 1).to_le_bytes())?;
        t.put(table, to, &(b + 1).to_le_bytes())?;
        Ok((a - 1).to_le_bytes().to_vec())
    };
    procedures.add("move", shift).expect("the first");
    let broken = |_: &mut dyn Operations, _: &[u8]| -> Result<Vec<u8>, Error> {
        panic!("a procedure with a fault")
    };
    procedures.add("broken", broken).expect("the second");
    procedures
}

fn opened(at: &tempfile::TempDir, partitions: u32) -> Box<dyn Database> {
    let options = OpenOptions {
        procedures: procedures(),
        cores: vec![0, 0],
        partitions: Some(partitions),
        durability: Durability::Memory,
        ..scene::options()
    };
    open(&Target::Local(at.path().join("db")), options).expect("it opens")
}

#[test]
fn procedures_run_across_partitions_and_many_at_once() {
    let at = tempfile::tempdir().expect("a directory");
    let db = opened(&at, 3);
    let table = db
        .create_table(&TableDef::hash("units", 0))
        .expect("a table");
    let key = |n: u64| Key::new(table, n.to_be_bytes());
    let fill = (0..10).map(|n| Operation::put(key(n), 100u64.to_le_bytes()));
    db.one_shot(fill.collect()).expect("units");
    let mut pipeline = db.pipeline(16, &Options::default()).expect("a pipeline");
    let mut returned = 0;
    for n in 0..300u64 {
        let (from, to) = (n % 10, (n * 7 + 3) % 10);
        let arguments = [from.to_be_bytes(), to.to_be_bytes()].concat();
        let home = Some(key(from));
        let procedure = "move".to_owned();
        let request = Request::Call {
            procedure,
            arguments,
            home,
        };
        pipeline.submit(n, request).expect("it is taken");
    }
    while pipeline.outstanding() > 0 {
        let (_, result) = pipeline.next(Duration::from_secs(20)).expect("an answer");
        match result {
            Ok(done) => returned += u64::from(done.returned.len() == 8),
            // So many at once on ten rows: some give way more often than they are tried.
            Err(error) => assert_eq!(error.retry(), dyno_txn_api::Retry::Safe, "{error}"),
        }
    }
    drop(pipeline);
    assert!(returned > 0);
    let sum = db.transact(|t| {
        let rows = (0..10).map(|n: u64| number(t.get(table, &n.to_be_bytes()).expect("reads")));
        Ok(rows.sum::<u64>())
    });
    assert_eq!(sum, Ok(1000));
}

#[test]
fn a_procedure_that_gives_up_says_so_and_an_unknown_one_is_named() {
    let at = tempfile::tempdir().expect("a directory");
    let db = opened(&at, 2);
    db.create_table(&TableDef::hash("units", 0))
        .expect("a table");
    let given_up = db.call("move", &[0; 16]).expect_err("nothing is there");
    assert_eq!(given_up.kind(), Code::UserAbort);
    let unknown = db.call("none", &[]).expect_err("not registered");
    assert_eq!(unknown.kind(), Code::NoSuchProcedure);
}

#[test]
fn a_procedure_that_panics_ends_the_engine_and_its_clients_hear_of_it() {
    let at = tempfile::tempdir().expect("a directory");
    let db = opened(&at, 2);
    db.create_table(&TableDef::hash("units", 0))
        .expect("a table");
    let lost = db.call("broken", &[]).expect_err("it panics");
    assert_eq!(lost.kind(), Code::OutcomeUnknown, "{lost}");
    let gone = db
        .transact(|t| t.table("units"))
        .expect_err("it has stopped");
    assert_eq!(gone.kind(), Code::Unavailable, "{gone}");
}

#[test]
fn operations_travel_together_or_apart_and_writes_are_seen_by_later_reads() {
    let at = tempfile::tempdir().expect("a directory");
    let db = opened(&at, 3);
    let table = db
        .create_table(&TableDef::hash("units", 0))
        .expect("a table");
    for separate in [false, true] {
        let options = Options {
            separate,
            ..Options::default()
        };
        let outcome = db.transact_with(&options, |t| {
            for n in 0..600u64 {
                t.put(table, &n.to_be_bytes(), &n.to_le_bytes())?;
            }
            let keys: Vec<_> = (0..600u64).map(u64::to_be_bytes).collect();
            let keys: Vec<_> = keys.iter().map(|key| (table, &key[..])).collect();
            let found = t.get_many(&keys)?;
            Ok(found
                .iter()
                .map(|row| number(row.map(Vec::from)))
                .sum::<u64>())
        });
        assert_eq!(outcome.expect("it commits").value, 599 * 300);
    }
}

#[test]
fn a_write_that_nobody_waited_for_fails_the_commit_with_its_own_reason() {
    let at = tempfile::tempdir().expect("a directory");
    let db = opened(&at, 2);
    let table = db
        .create_table(&TableDef::hash("units", 0))
        .expect("a table");
    let mut older = db.begin(&Options::default()).expect("it begins");
    assert_eq!(older.timestamp(), None, "nothing was asked yet");
    older.get(table, b"another").expect("it reads");
    assert!(older.timestamp().is_some());
    // A younger one reads the row first: the older one may not write it any more.
    db.transact(|t| t.get(table, b"row")).expect("it reads");
    older.put(table, b"row", b"late").expect("it is sent");
    let refused = older.commit().expect_err("a younger one has read");
    assert_eq!(
        (refused.kind(), refused.retry()),
        (Code::Conflict, dyno_txn_api::Retry::Safe)
    );
}

#[test]
fn the_last_operations_are_committed_with_their_answers_or_not_at_all() {
    let at = tempfile::tempdir().expect("a directory");
    let db = opened(&at, 3);
    let table = db
        .create_table(&TableDef::hash("units", 0))
        .expect("a table");
    let key = |n: u64| Key::new(table, n.to_be_bytes());
    for (round, separate) in [(0u64, false), (1, true)] {
        let options = Options {
            separate,
            ..Options::default()
        };
        // Reads on all partitions before writes on all of them: one message to each, and the
        // commit.
        let gets = (0..20).map(|n| Operation::get(key(n)));
        let puts = (0..20).map(|n| Operation::put(key(n), (round + 1).to_le_bytes()));
        let operations: Vec<Operation> = gets.chain(puts).collect();
        let mut running = db.begin(&options).expect("it begins");
        let answers = running.run_last(&operations).expect("it commits");
        assert_eq!(answers.len(), 40);
        for answer in answers.into_iter().take(20) {
            assert_eq!(number(answer.value().expect("a value")), round);
        }
        let late = running.rollback().expect_err("it is too late");
        assert_eq!(late.kind(), Code::Finished);
        let mut running = db.begin(&options).expect("it begins");
        let there = [
            Operation::put(key(30), [1; 8]),
            Operation::insert(key(0), [9; 8]),
        ];
        let refused = running.run_last(&there).expect_err("there is a row");
        assert_eq!(refused.kind(), Code::AlreadyExists);
        drop(running);
        let rows =
            db.transact(|t| Ok((t.get(table, &key(0).bytes)?, t.get(table, &key(30).bytes)?)));
        assert_eq!(rows, Ok((Some((round + 1).to_le_bytes().to_vec()), None)));
    }
}

#[test]
fn a_read_behind_the_last_write_waits_for_the_commit() {
    let at = tempfile::tempdir().expect("a directory");
    let db = opened(&at, 2);
    let table = db
        .create_table(&TableDef::hash("units", 0))
        .expect("a table");
    let key = Key::new(table, b"row");
    let mut running = db.begin(&Options::default()).expect("it begins");
    let operations = [Operation::put(key.clone(), [1; 8]), Operation::get(key)];
    running.run_last(&operations).expect("they run");
    running.rollback().expect("nothing was committed with them");
    assert_eq!(db.transact(|t| t.get(table, b"row")), Ok(None));
}

#[test]
fn many_writes_at_once_fail_the_commit_with_their_own_reason() {
    let at = tempfile::tempdir().expect("a directory");
    let db = opened(&at, 3);
    let table = db
        .create_table(&TableDef::hash("units", 0))
        .expect("a table");
    let insert = |n: u64| {
        let key = Key::new(table, n.to_be_bytes());
        (key, Change::Insert(vec![1]))
    };
    for separate in [false, true] {
        let options = Options {
            separate,
            ..Options::default()
        };
        let from = if separate { 1_000 } else { 0 };
        let all = || (from..from + 600).map(insert).collect::<Vec<_>>();
        let first = db.transact_with(&options, |t| t.write_many(all()));
        first.expect("none was there");
        let mut second = db.begin(&options).expect("it begins");
        let refused = second
            .write_many(all())
            .and_then(|()| second.commit().map(drop));
        assert_eq!(
            refused.expect_err("all are there").kind(),
            Code::AlreadyExists
        );
        let keys: Vec<_> = (from..from + 600).map(u64::to_be_bytes).collect();
        let keys: Vec<_> = keys.iter().map(|key| (table, &key[..])).collect();
        let mut behind = db.begin(&options).expect("it begins");
        let changed = (from..from + 2).map(|n| (insert(n).0, Change::Put(vec![2])));
        let found = behind.write_then_get(changed.collect(), &keys);
        let found = found.expect("they are there");
        let sum = found.iter().flatten().map(|row| u64::from(row[0]));
        assert_eq!(sum.sum::<u64>(), 602, "what the writes left");
        behind.rollback().expect("it can be");
    }
}
