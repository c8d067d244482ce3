//! Procedures, pipelines and the ways in which operations travel.

use std::time::Duration;

use dyno_txn_api::{
    Code, Database, Error, Key, Operation, Operations, Options, Procedures, Request, TableDef,
    Target, Transact,
};
use dyno_txn_node::{Durability, OpenOptions, open};

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| {
        u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
    })
}

/// `move FROM TO`: one unit from a row to another one, which may lie on another partition.
fn procedures() -> Procedures {
    let mut procedures = Procedures::new();
    let shift = |t: &mut dyn Operations, arguments: &[u8]| -> Result<Vec<u8>, Error> {
        let table = t.table("units")?;
        let (from, to) = arguments.split_at(8);
        let found = t.get_many(&[(table, from), (table, to)])?;
        let [a, b] = [0, 1].map(|at| number(found[at].clone()));
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
        spin: Duration::from_micros(20),
        ..OpenOptions::default()
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
            Ok(found.into_iter().map(number).sum::<u64>())
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
    // A younger one reads the row first: the older one may not write it any more.
    db.transact(|t| t.get(table, b"row")).expect("it reads");
    older.put(table, b"row", b"late").expect("it is sent");
    let refused = older.commit().expect_err("a younger one has read");
    assert_eq!(
        (refused.kind(), refused.retry()),
        (Code::Conflict, dyno_txn_api::Retry::Safe)
    );
}
