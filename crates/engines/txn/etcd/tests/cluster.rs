//! Real etcd: one node and three on loopback, one of which is killed.

mod nodes;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dyno_txn_api::conformance::{concurrent_sums, same_as_the_model};
use dyno_txn_api::limits::KEY_BYTES_MAX;
use dyno_txn_api::{
    Code, Database, Key, Operation, Options, Retry, Scan, TableDef, TableId, Transact,
};
use dyno_txn_etcd::{Etcd, EtcdOptions};
use nodes::Nodes;

fn open(nodes: &Nodes) -> Etcd {
    Etcd::open(&nodes.addresses(), EtcdOptions::default()).expect("addresses are well formed")
}

#[test]
fn it_answers_as_the_model_does() {
    let Some(nodes) = Nodes::start(1) else { return };
    let db = open(&nodes);
    for seed in 0..4 {
        assert_eq!(same_as_the_model(&db, seed, 40), Ok(()));
    }
}

#[test]
fn concurrent_transactions_are_serializable() {
    let Some(nodes) = Nodes::start(1) else { return };
    assert_eq!(concurrent_sums(&open(&nodes), 4, 25), Ok(()));
}

#[test]
fn more_operations_than_the_server_takes_are_refused_with_what_to_do() {
    let Some(nodes) = Nodes::start(1) else { return };
    let db = open(&nodes);
    let table = db
        .create_table(&TableDef::hash("many", 0))
        .expect("it is new");
    let put = |n: u32| Operation::put(Key::new(table, n.to_be_bytes()), b"x".to_vec());
    let error = db
        .one_shot((0..2_000).map(put).collect())
        .expect_err("too many");
    assert_eq!(error.kind(), Code::TooLarge);
    assert!(error.text().contains("--max-txn-ops"), "{error}");
    db.one_shot((0..100).map(put).collect())
        .expect("not too many");
}

/// The rows are more than one answer of the server may have, and the scan asks for all of them.
#[test]
fn a_table_that_is_larger_than_an_answer_is_read_page_by_page() {
    const ROWS: u32 = 5_000;
    const TOGETHER: u32 = 50;
    let Some(nodes) = Nodes::start(1) else { return };
    let db = open(&nodes);
    let table = db
        .create_table(&TableDef::hash("large", 0))
        .expect("it is new");
    let put = |n: u32| Operation::put(Key::new(table, n.to_be_bytes()), vec![7; 16 << 10]);
    for first in (0..ROWS).step_by(TOGETHER as usize) {
        let rows = (first..first + TOGETHER).map(put).collect();
        db.one_shot(rows).expect("room");
    }
    assert_eq!(count(&db, table), ROWS);
}

/// Fewer rows than a page asks for are more than one answer may have.
#[test]
fn rows_that_are_long_are_read_in_smaller_pages() {
    const ROWS: u32 = 70;
    let Some(nodes) = Nodes::start(1) else { return };
    let db = open(&nodes);
    let table = db
        .create_table(&TableDef::hash("long", 0))
        .expect("it is new");
    for row in 0..ROWS {
        let put = Operation::put(Key::new(table, row.to_be_bytes()), vec![7; 1 << 20]);
        db.one_shot(vec![put]).expect("room");
    }
    assert_eq!(count(&db, table), ROWS);
}

/// How many rows a scan of the whole table finds.
fn count(db: &Etcd, table: TableId) -> u32 {
    let options = Options {
        attempts: 1,
        ..Options::default()
    };
    let found = db.transact_with(&options, |t| {
        let (mut scan, mut found) = (Scan::all(table), 0);
        loop {
            let page = t.scan(&scan)?;
            found += page.rows.len() as u32;
            match page.next {
                Some(next) => scan = scan.after(next),
                None => return Ok(found),
            }
        }
    });
    found.expect("pages that fit").value
}

#[test]
fn keys_that_are_too_long_are_refused_whatever_is_done_with_them() {
    let Some(nodes) = Nodes::start(1) else { return };
    let db = open(&nodes);
    let table = db
        .create_table(&TableDef::hash("keys", 0))
        .expect("it is new");
    let key = Key::new(table, vec![1; KEY_BYTES_MAX + 1]);
    for operation in [
        Operation::get(key.clone()),
        Operation::put(key.clone(), "x"),
        Operation::insert(key.clone(), "x"),
        Operation::delete(key),
    ] {
        let error = db.one_shot(vec![operation]).expect_err("too long");
        assert_eq!(error.kind(), Code::TooLarge);
    }
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    let nothing = ["127.0.0.1:1".to_owned()];
    let db = Etcd::open(&nothing, EtcdOptions::default()).expect("well formed");
    let options = Options {
        deadline: Duration::from_millis(300),
        attempts: 1,
        ..Options::default()
    };
    let table = TableId(1);
    let failed = db.transact_with(&options, |t| t.get(table, b"k"));
    assert_eq!(
        failed.expect_err("nobody listens").kind(),
        Code::Unavailable
    );
}

#[test]
fn one_of_three_nodes_is_killed_and_nothing_acknowledged_is_lost() {
    let Some(mut nodes) = Nodes::start(3) else {
        return;
    };
    let db = open(&nodes);
    let table = db
        .create_table(&TableDef::hash("survivors", 0))
        .expect("it is new");
    let stop = AtomicBool::new(false);
    let (acknowledged, unknown) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut acknowledged, mut unknown) = (Vec::new(), Vec::new());
            for number in 0u32.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                match db.transact(|t| t.put(table, &number.to_be_bytes(), b"there")) {
                    Ok(()) => acknowledged.push(number),
                    Err(error) if error.retry() == Retry::Unknown => unknown.push(number),
                    Err(error) => panic!("{error}"),
                }
            }
            (acknowledged, unknown)
        });
        thread::sleep(Duration::from_millis(700));
        // The client's first endpoint, so that it must go to another.
        nodes.kill(0);
        thread::sleep(Duration::from_millis(3_000));
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("the writer ends")
    });
    assert!(acknowledged.len() > 20, "{} of them", acknowledged.len());
    assert!(unknown.len() <= 2, "{unknown:?}");
    for number in acknowledged {
        let found = db.transact(|t| t.get(table, &number.to_be_bytes()));
        assert_eq!(
            found.expect("two nodes are left").as_deref(),
            Some(&b"there"[..]),
            "{number}"
        );
    }
}
