//! A real PostgreSQL, in a private cluster of the test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use dyno_postgres::{Cluster, Installation, Options as ClusterOptions};
use dyno_txn_api::conformance::{concurrent_sums, same_as_the_model};
use dyno_txn_api::{
    Code, Database, Error, Key, Kind, Operation, Options, Procedures, Request, Result, Retry, Scan,
    TableDef, Transact, Tuple, Value, ValueRef, encode_row,
};
use dyno_txn_postgres::{Argument, Fields, Function, Isolation, Postgres, PostgresOptions};
use tempfile::TempDir;

/// A server that is stopped before its folder goes.
struct Server {
    cluster: Cluster,
    _folder: TempDir,
}

impl Server {
    /// None, with the reason printed, where there is no PostgreSQL.
    fn start() -> Option<Server> {
        if let Err(error) = Installation::find(None) {
            println!("skipped: PostgreSQL: {error}");
            return None;
        }
        let folder = tempfile::Builder::new()
            .prefix("dyno-txn-pg-")
            .tempdir_in("/tmp")
            .expect("a folder can be made");
        // The server's user is another one where root runs the test.
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), all).expect("the folder is ours");
        let place = folder.path().join("one");
        let cluster = Cluster::open(&place, ClusterOptions::small()).expect("it starts");
        Some(Server {
            cluster,
            _folder: folder,
        })
    }

    fn open(&self, isolation: Isolation) -> Postgres {
        let options = PostgresOptions {
            isolation,
            functions: vec![adder()],
            ..PostgresOptions::default()
        };
        Postgres::open(&self.cluster.dsn().text(), options).expect("it listens")
    }
}

/// Adds its argument to the only row of a table, and refuses to go below nothing. Far below,
/// it says that it is not known what was done.
fn adder() -> Function {
    let create =
        "CREATE OR REPLACE FUNCTION dyno_txn.adder(by bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE sum bigint;
        BEGIN
            UPDATE dyno_txn.\"sums\" SET cents = cents + by RETURNING cents INTO STRICT sum;
            IF sum < -1000 THEN RAISE EXCEPTION 'perhaps' USING ERRCODE = '40003'; END IF;
            IF sum < 0 THEN RAISE EXCEPTION 'nothing left' USING ERRCODE = 'DT020'; END IF;
            RETURN sum;
        END $$";
    Function {
        procedure: "add".to_owned(),
        create: create.to_owned(),
        call: "SELECT dyno_txn.adder($1)".to_owned(),
        arguments: |bytes: &[u8]| {
            let wrong = || Error::new(Code::BadArgument, "eight bytes are wanted");
            let number = bytes.first_chunk().ok_or_else(wrong)?;
            Ok(vec![Argument::Number(Some(i64::from_le_bytes(*number)))])
        },
        answer: |fields: &Fields<'_>| Ok(fields.number(0)?.to_le_bytes().to_vec()),
    }
}

#[test]
fn it_answers_as_the_model_does() {
    let Some(server) = Server::start() else {
        return;
    };
    for isolation in [Isolation::Serializable, Isolation::ReadCommitted] {
        let db = server.open(isolation);
        let from = if isolation == Isolation::Serializable {
            0
        } else {
            100
        };
        for seed in from..from + 6 {
            assert_eq!(same_as_the_model(&db, seed, 60), Ok(()), "{isolation:?}");
        }
    }
}

#[test]
fn concurrent_transactions_lose_nothing() {
    let Some(server) = Server::start() else {
        return;
    };
    for isolation in [Isolation::Serializable, Isolation::ReadCommitted] {
        let done = concurrent_sums(&server.open(isolation), 4, 25);
        assert_eq!(done, Ok(()), "{isolation:?}");
    }
}

#[test]
fn functions_run_in_the_server_and_say_why_they_give_up() {
    let Some(server) = Server::start() else {
        return;
    };
    let db = server.open(Isolation::Serializable);
    let def = TableDef::hash("sums", 0).column("cents", Kind::I64);
    let table = db.create_table(&def).expect("it is new");
    let add = |by: i64| db.call("add", &by.to_le_bytes());
    db.transact(|t| t.put(table, b"only", &encode_row(&[ValueRef::I64(5)])))
        .expect("a row");
    assert_eq!(add(10), Ok(15i64.to_le_bytes().to_vec()));
    let refused = add(-100).expect_err("below nothing");
    assert_eq!(
        (refused.kind(), refused.text()),
        (Code::UserAbort, "nothing left")
    );
    assert_eq!(
        add(0),
        Ok(15i64.to_le_bytes().to_vec()),
        "it was rolled back"
    );
    let unknown = db.call("subtract", b"").expect_err("no such thing");
    assert_eq!(unknown.kind(), Code::NoSuchProcedure);
    // Done again as after a conflict, it could be done twice.
    let unknown = add(-2_000).expect_err("it may be done");
    assert_eq!(
        (unknown.kind(), unknown.retry()),
        (Code::OutcomeUnknown, Retry::Unknown)
    );
    let mut pipeline = db.pipeline(8, &Options::default()).expect("threads");
    for ticket in 0..40 {
        let request = Request::Call {
            procedure: "add".to_owned(),
            arguments: 1i64.to_le_bytes().to_vec(),
            home: None,
        };
        pipeline.submit(ticket, request).expect("it waits for room");
    }
    let mut done = 0;
    while pipeline.outstanding() > 0 {
        match pipeline.next(Duration::from_secs(10)) {
            Some((_, Ok(_))) => done += 1,
            Some((_, Err(error))) => assert_eq!(error.retry(), Retry::Safe, "{error}"),
            None => panic!("no answer"),
        }
    }
    drop(pipeline);
    assert_eq!(add(0), Ok((15i64 + done).to_le_bytes().to_vec()));
}

#[test]
fn pages_of_a_long_range_follow_each_other() {
    let Some(server) = Server::start() else {
        return;
    };
    let db = server.open(Isolation::Serializable);
    let table = db
        .create_table(&TableDef::hash("long", 0))
        .expect("it is new");
    let rows = 10_000u32;
    for part in (0..rows).collect::<Vec<_>>().chunks(1_000) {
        let put = |n: &u32| Operation::put(Key::new(table, n.to_be_bytes()), b"x".to_vec());
        db.one_shot(part.iter().map(put).collect())
            .expect("they are new");
    }
    let count = |scan: Scan| -> Result<u32> {
        db.transact(|t| {
            let (mut scan, mut found) = (scan.clone(), 0);
            loop {
                let page = t.scan(&scan)?;
                found += page.rows.len() as u32;
                match page.next {
                    Some(next) => scan = scan.after(next),
                    None => return Ok(found),
                }
            }
        })
    };
    assert_eq!(count(Scan::all(table)), Ok(rows));
    assert_eq!(count(Scan::all(table).backward().limit(999)), Ok(rows));
}

#[test]
fn what_sql_cannot_hold_is_refused_by_name() {
    let Some(server) = Server::start() else {
        return;
    };
    let db = server.open(Isolation::Serializable);
    let def = TableDef::hash("edges", 0)
        .column("number", Kind::U64)
        .nullable("text", Kind::Text);
    let table = db.create_table(&def).expect("it is new");
    assert_eq!(db.create_table(&def), Ok(table), "it is there");
    let key = Tuple::new().u64(1).finish();
    for (row, says) in [
        ([Value::U64(u64::MAX), Value::Null], "2^63"),
        ([Value::U64(1), Value::Text("a\0b".to_owned())], "zero byte"),
    ] {
        let row = encode_row(&[row[0].borrowed(), row[1].borrowed()]);
        let refused = db.transact(|t| t.put(table, &key, &row)).expect_err(says);
        assert_eq!(refused.kind(), Code::NotSupported);
        assert!(refused.text().contains(says), "{refused}");
    }
    let hidden = TableDef::hash("hidden", 0).column("_key", Kind::U64);
    assert_eq!(
        db.create_table(&hidden).expect_err("ours").kind(),
        Code::NotSupported
    );
    let other = TableDef::hash("edges", 8).column("number", Kind::U64);
    assert_eq!(
        db.create_table(&other).expect_err("another").kind(),
        Code::TableExists
    );
}

#[test]
fn a_server_that_dies_is_told_from_a_commit_that_may_have_been_done() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let db = server.open(Isolation::Serializable);
    let table = db
        .create_table(&TableDef::hash("rows", 0))
        .expect("it is new");
    let options = Options::default();
    let mut reading = db.begin(&options).expect("it begins");
    reading.get(table, b"k").expect("it reads");
    let mut writing = db.begin(&options).expect("it begins");
    writing.put(table, b"k", b"v").expect("it writes");
    server.cluster.kill_all().expect("it was running");
    let lost = reading.get(table, b"k").expect_err("nobody answers");
    assert_eq!(lost.kind(), Code::Unavailable);
    let unknown = writing.commit().expect_err("nobody answers");
    assert_eq!(
        (unknown.kind(), unknown.retry()),
        (Code::OutcomeUnknown, Retry::Unknown)
    );
    let again = db
        .begin(&options)
        .expect("nothing is asked yet")
        .get(table, b"k");
    assert_eq!(again.expect_err("nobody listens").kind(), Code::Unavailable);
}

#[test]
fn no_error_shows_a_password() {
    for dsn in [
        "postgresql://ann:se%20cret@127.0.0.1:1/db?connect_timeout=1",
        "host=127.0.0.1 port=1 user=ann password='se cret' connect_timeout=1",
        "host=127.0.0.1 port=none password=cret",
    ] {
        let began = Instant::now();
        let error = Postgres::open(dsn, PostgresOptions::default()).map(drop);
        let error = error.expect_err("nobody listens");
        assert!(!error.to_string().contains("cret"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn procedures_without_a_function_run_in_the_client() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut procedures = Procedures::new();
    procedures
        .add("count", |t: &mut dyn dyno_txn_api::Operations, _: &[u8]| {
            let table = t.table("plain")?;
            Ok(vec![t.scan(&Scan::all(table))?.rows.len() as u8])
        })
        .expect("the name is free");
    let options = PostgresOptions {
        procedures,
        ..PostgresOptions::default()
    };
    let db = Postgres::open(&server.cluster.dsn().text(), options).expect("it listens");
    let table = db
        .create_table(&TableDef::hash("plain", 0))
        .expect("it is new");
    db.transact(|t| t.put(table, b"a", b"1")).expect("a row");
    assert_eq!(db.call("count", b""), Ok(vec![1]));
}
