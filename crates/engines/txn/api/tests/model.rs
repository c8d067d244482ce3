//! The model is a database: tables, transactions, scans by key and by index, refusals.

use std::time::Duration;

use dyno_txn_api::model::Model;
use dyno_txn_api::{
    Assignment, Code, Compare, Database, Error, Filter, Key, Kind, Operation, Operations, Options,
    Procedures, Request, Result, Row, Scan, TableDef, TableId, Transact, Tuple, ValueRef,
    encode_row,
};

fn bank() -> Result<(Model, TableDef, TableId)> {
    let mut procedures = Procedures::new();
    procedures.add("cents-of", |t: &mut dyn Operations, key: &[u8]| {
        let table = t.table("account")?;
        Ok(t.get(table, key)?.unwrap_or_default())
    })?;
    let db = Model::with(procedures);
    let def = TableDef::hash("account", 8)
        .column("branch", Kind::U64)
        .column("owner", Kind::Text)
        .nullable("cents", Kind::I64)
        .index("by-owner", &["branch", "owner"], 8)?;
    let table = db.create_table(&def)?;
    db.transact(|t| {
        for number in 0..6u64 {
            let owner = if number % 2 == 0 { "Ada" } else { "Bob" };
            let cents = ValueRef::I64(number as i64 * 10);
            let row = [ValueRef::U64(1), ValueRef::Text(owner), cents];
            t.insert(table, &key(number), &encode_row(&row))?;
        }
        Ok(())
    })?;
    Ok((db, def, table))
}

fn key(number: u64) -> Vec<u8> {
    Tuple::new().u64(1).u64(number).finish()
}

#[test]
fn a_scan_goes_page_by_page_both_ways() -> Result<()> {
    let (db, _, table) = bank()?;
    for backward in [false, true] {
        let mut scan = Scan::prefix(table, Tuple::new().u64(1).finish()).limit(4);
        if backward {
            scan = scan.backward();
        }
        let first = db.transact(|t| t.scan(&scan))?;
        let next = first.next.clone().expect("two rows are left");
        let second = db.transact(|t| t.scan(&scan.clone().after(next.clone())))?;
        assert_eq!(
            (first.rows.len(), second.rows.len(), second.next),
            (4, 2, None)
        );
        let mut keys: Vec<_> = first
            .rows
            .into_iter()
            .chain(second.rows)
            .map(|r| r.key)
            .collect();
        if backward {
            keys.reverse();
        }
        assert_eq!(keys, (0..6).map(key).collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn an_index_is_kept_through_updates() -> Result<()> {
    let (db, def, table) = bank()?;
    db.transact(|t| t.update(table, &key(0), vec![Assignment::set(1, "Bob")]))?;
    let of_bob = def.index_prefix(0, &[ValueRef::U64(1), ValueRef::Text("Bob")])?;
    let rich = Filter::compare(2, Compare::Greater, 5i64);
    let scan = Scan::prefix(table, of_bob)
        .index(0)
        .filter(rich)
        .columns(&[2]);
    let page = db.transact(|t| t.scan(&scan))?;
    let cents: Result<Vec<_>> = page
        .rows
        .iter()
        .map(|r| Row::parse(&r.value)?.i64(0))
        .collect();
    assert_eq!(cents?, [10, 30, 50]);
    let entry = def.index_key(0, &key(3), &db_value(&db, table, 3)?)?;
    assert_eq!(def.key_of_entry(0, &entry)?, key(3));
    Ok(())
}

/// Without the refusal a request of a few kilobytes repeats a row's longest column thousands of
/// times, and the row that is to be returned takes gigabytes.
#[test]
fn a_scan_that_requests_a_column_twice_is_refused() -> Result<()> {
    let (db, _, table) = bank()?;
    for columns in [vec![2, 2], vec![0, 1, 0], vec![1; 70_000]] {
        let scan = Scan::all(table).columns(&columns);
        let refused = db.transact(|t| t.scan(&scan)).expect_err("a column twice");
        assert_eq!(refused.kind(), Code::BadArgument);
    }
    let every = db.transact(|t| t.scan(&Scan::all(table).columns(&[2, 1, 0])))?;
    assert_eq!(Row::parse(&every.rows[0].value)?.columns(), 3);
    Ok(())
}

fn db_value(db: &Model, table: TableId, number: u64) -> Result<Vec<u8>> {
    Ok(db
        .transact(|t| t.get(table, &key(number)))?
        .expect("inserted"))
}

#[test]
fn what_is_given_up_leaves_nothing() -> Result<()> {
    let (db, _, table) = bank()?;
    let given_up = db.transact(|t| {
        t.delete(table, &key(1))?;
        Err::<(), _>(Error::user_abort("changed my mind"))
    });
    assert_eq!(given_up.expect_err("given up").kind(), Code::UserAbort);
    assert!(db.transact(|t| t.get(table, &key(1)))?.is_some());
    Ok(())
}

#[test]
fn a_failed_write_dooms_the_transaction() -> Result<()> {
    let (db, _, table) = bank()?;
    let mut t = db.begin(&Options::default())?;
    t.delete(table, &key(5))?;
    let exists = t.insert(table, &key(1), b"").expect_err("there is one");
    assert_eq!(exists.kind(), Code::AlreadyExists);
    assert_eq!(t.commit().expect_err("doomed").kind(), Code::WriteFailed);
    assert!(db.transact(|t| t.get(table, &key(5)))?.is_some());
    Ok(())
}

#[test]
fn one_shots_calls_and_pipelines() -> Result<()> {
    let (db, _, table) = bank()?;
    let at = Key::new(table, key(2));
    let more = vec![Assignment::add(2, 5i64)];
    let done = db.one_shot(vec![
        Operation::update(at.clone(), more),
        Operation::get(at),
    ])?;
    let value = done
        .answers
        .into_iter()
        .nth(1)
        .expect("two answers")
        .value()?;
    let value = value.expect("a row");
    assert_eq!(Row::parse(&value)?.i64(2), Ok(25));
    assert_eq!(db.call("cents-of", &key(2))?, value);
    assert_eq!(
        db.call("other", b"").expect_err("none").kind(),
        Code::NoSuchProcedure
    );

    let mut pipeline = db.pipeline(8, &Options::default())?;
    let get = Request::Operations(vec![Operation::get(Key::new(table, key(2)))]);
    pipeline.submit(7, get)?;
    let (ticket, answer) = pipeline.next(Duration::ZERO).expect("one is under way");
    assert_eq!((ticket, answer?.answers.len()), (7, 1));
    assert_eq!(pipeline.outstanding(), 0);
    Ok(())
}

#[test]
fn refusals_have_their_codes() -> Result<()> {
    let (db, def, table) = bank()?;
    let code = |result: Result<()>| result.expect_err("refused").kind();
    let other = TableDef::hash("account", 4);
    assert_eq!(
        db.create_table(&other).expect_err("other").kind(),
        Code::TableExists
    );
    assert_eq!(db.create_table(&def), Ok(table));
    assert_eq!(
        code(db.transact(|t| t.put(TableId(9), b"", b""))),
        Code::NoSuchTable
    );
    assert_eq!(code(db.transact(|t| t.put(table, b"", b""))), Code::BadRow);
    assert_eq!(
        code(db.transact(|t| t.put(table, &[0; 2000], b""))),
        Code::TooLarge
    );
    let nobody = encode_row(&[ValueRef::U64(1), ValueRef::Null]);
    assert_eq!(
        code(db.transact(|t| t.put(table, &key(9), &nobody))),
        Code::BadRow
    );
    let elsewhere = encode_row(&[ValueRef::U64(2), ValueRef::Text("Eve")]);
    assert_eq!(
        code(db.transact(|t| t.put(table, &key(9), &elsewhere))),
        Code::BadRow
    );
    let nothing = db.transact(|t| t.update(table, &key(9), Vec::new()));
    assert_eq!(code(nothing), Code::NotFound);
    let scan = Scan::all(table).index(1);
    assert_eq!(
        code(db.transact(|t| t.scan(&scan).map(drop))),
        Code::NoSuchIndex
    );
    let read_only = Options {
        read_only: true,
        ..Options::default()
    };
    let mut t = db.begin(&read_only)?;
    assert_eq!(code(t.delete(table, &key(1))), Code::ReadOnly);
    let brief = Options {
        deadline: Duration::from_millis(1),
        ..Options::default()
    };
    assert_eq!(code(db.begin(&brief).map(drop)), Code::Deadline);
    t.rollback()
}

#[test]
fn definitions_are_checked() {
    let splits = vec![b"b".to_vec(), b"a".to_vec()];
    assert!(TableDef::range("t", splits).check().is_err());
    assert!(TableDef::hash("", 0).check().is_err());
    assert!(TableDef::hash("t", 0).index("i", &["none"], 0).is_err());
    let mut nested = Filter::IsNull(0);
    for _ in 0..40 {
        nested = Filter::Not(Box::new(nested));
    }
    let scan = Scan::all(TableId(1)).filter(nested);
    assert_eq!(
        scan.check(1, 0).expect_err("too deep").kind(),
        Code::TooLarge
    );
}
