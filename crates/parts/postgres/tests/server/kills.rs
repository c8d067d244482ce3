//! What a kill leaves behind, and what an error means after one.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::place::{client, number, open, place};
use dyno_postgres::{Class, Cluster, Options, Retry, Session, connect};

fn leaving() -> Options {
    Options {
        leave_running: true,
        ..Options::small()
    }
}

/// Waits until somebody sleeps in the server, so that a kill hits a statement under way.
fn wait_for_sleeper(cluster: &Cluster) {
    let mut watch = client(cluster);
    let ask = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let deadline = Instant::now() + Duration::from_secs(20);
    while number(&mut watch, ask) == 0 {
        assert!(Instant::now() < deadline, "nobody sleeps");
        thread::yield_now();
    }
}

#[test]
fn everything_killed_comes_back_with_what_was_committed() {
    let Some(place) = place() else { return };
    let mut cluster = open(&place.path().join("one"));
    client(&cluster)
        .batch_execute("CREATE TABLE kept (n bigint)")
        .unwrap();
    for round in 0..3_i64 {
        let mut sql = client(&cluster);
        sql.execute("INSERT INTO kept VALUES ($1)", &[&round])
            .unwrap();
        cluster.kill_all().unwrap();
        assert!(cluster.pids().is_empty());
        let class = Class::from_error(&sql.simple_query("SELECT 1").unwrap_err());
        assert_eq!(
            (class.code, class.retry),
            ("outcome-unknown", Retry::Unknown)
        );
        let error = connect(&cluster.dsn(), &Session::default()).err().unwrap();
        let class = error.class().unwrap();
        assert_eq!((class.code, class.retry), ("server-lost", Retry::Safe));
        cluster.restart().unwrap();
    }
    let mut sql = client(&cluster);
    assert_eq!(number(&mut sql, "SELECT count(*) FROM kept"), 3);
}

#[test]
fn a_server_that_outlived_its_owner_is_adopted() {
    let Some(place) = place() else { return };
    let dir = place.path().join("one");
    let first = Cluster::open(&dir, leaving()).unwrap();
    let pid = first.pids().postmaster;
    drop(first);
    let mut second = Cluster::open(&dir, leaving()).unwrap();
    assert_eq!(second.pids().postmaster, pid);
    number(&mut client(&second), "SELECT 1::bigint");
    second.stop().unwrap();
    assert!(second.pids().is_empty());
}

#[test]
fn a_server_that_is_to_end_with_its_owner_is_started_by_it() {
    let Some(place) = place() else { return };
    let dir = place.path().join("one");
    let first = Cluster::open(&dir, leaving()).unwrap();
    let pid = first.pids().postmaster;
    drop(first);
    let second = open(&dir);
    assert_ne!(second.pids().postmaster, pid);
    number(&mut client(&second), "SELECT 1::bigint");
}

#[test]
fn orphans_of_a_killed_postmaster_are_ended_before_the_next_start() {
    let Some(place) = place() else { return };
    let dir = place.path().join("one");
    let first = Cluster::open(&dir, leaving()).unwrap();
    let mut sql = client(&first);
    let sleeper = thread::spawn(move || sql.simple_query("SELECT pg_sleep(600)").map(|_| ()));
    wait_for_sleeper(&first);
    let before = first.pids();
    assert!(first.kill_one(before.postmaster.unwrap()).unwrap());
    drop(first);
    let second = open(&dir);
    let after = second.pids();
    assert!(
        before
            .children
            .iter()
            .all(|pid| !after.children.contains(pid))
    );
    number(&mut client(&second), "SELECT 1::bigint");
    let class = Class::from_error(&sleeper.join().unwrap().unwrap_err());
    assert_eq!(class.retry, Retry::Unknown);
}

#[test]
fn a_number_in_a_lock_file_that_is_somebody_elses_now_does_no_harm() {
    let Some(place) = place() else { return };
    let dir = place.path().join("one");
    let mut cluster = open(&dir);
    let lock = dir.join("data/postmaster.pid");
    let text = fs::read_to_string(&lock).unwrap();
    let old = cluster.pids().postmaster.unwrap().to_string();
    cluster.kill_all().unwrap();
    let mut unrelated = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(&lock, text.replacen(&old, &unrelated.id().to_string(), 1)).unwrap();
    cluster.restart().unwrap();
    number(&mut client(&cluster), "SELECT 1::bigint");
    assert!(!cluster.kill_one(unrelated.id()).unwrap());
    assert!(unrelated.try_wait().unwrap().is_none());
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

#[test]
fn errors_of_statements_say_whether_a_retry_is_safe() {
    let Some(place) = place() else { return };
    let cluster = open(&place.path().join("one"));
    let mut sql = client(&cluster);
    sql.batch_execute("CREATE TABLE t (n bigint PRIMARY KEY); INSERT INTO t VALUES (1)")
        .unwrap();
    let class = |sql: &mut dyno_postgres::postgres::Client, text: &str| {
        let class = Class::from_error(&sql.batch_execute(text).unwrap_err());
        (class.code, class.sqlstate.unwrap_or_default(), class.retry)
    };
    let raise = "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'DP003'; END $$";
    for (text, code, state, retry) in [
        ("INSERT INTO t VALUES (1)", "refused", "23505", Retry::Never),
        ("SELECT nothing()", "not-installed", "42883", Retry::Never),
        (raise, "application", "DP003", Retry::Never),
        (
            "SET TRANSACTION READ ONLY; BEGIN READ ONLY; INSERT INTO t VALUES (2)",
            "not-primary",
            "25006",
            Retry::Safe,
        ),
    ] {
        assert_eq!(
            class(&mut sql, text),
            (code, state.to_owned(), retry),
            "{text}"
        );
        sql.batch_execute("ROLLBACK").unwrap();
    }
    let mut other = client(&cluster);
    other.batch_execute("BEGIN; LOCK TABLE t").unwrap();
    let waiting = "SET lock_timeout = '10ms'; INSERT INTO t VALUES (3)";
    assert_eq!(
        class(&mut sql, waiting),
        ("conflict", "55P03".to_owned(), Retry::Safe)
    );
    other.batch_execute("ROLLBACK").unwrap();

    let sleeper = thread::spawn(move || {
        let error = sql.batch_execute("SELECT pg_sleep(600)").unwrap_err();
        Class::from_error(&error)
    });
    wait_for_sleeper(&cluster);
    other
        .batch_execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
        )
        .unwrap();
    let class = sleeper.join().unwrap();
    assert_eq!(
        (class.code, class.retry),
        ("outcome-unknown", Retry::Unknown)
    );
}

#[test]
fn one_killed_backend_takes_the_others_with_it_and_the_server_recovers() {
    let Some(place) = place() else { return };
    let cluster = open(&place.path().join("one"));
    let (mut one, mut two) = (client(&cluster), client(&cluster));
    let pid: i32 = one
        .query_one("SELECT pg_backend_pid()", &[])
        .unwrap()
        .get(0);
    assert!(cluster.kill_one(u32::try_from(pid).unwrap()).unwrap());
    for sql in [&mut one, &mut two] {
        let mut class = None;
        // The postmaster needs a moment to end the other session.
        while class.is_none() {
            class = sql
                .simple_query("SELECT 1")
                .err()
                .map(|e| Class::from_error(&e));
        }
        assert_eq!(class.unwrap().retry, Retry::Unknown);
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut again = loop {
        match connect(&cluster.dsn(), &Session::default()) {
            Ok(sql) => break sql,
            Err(error) => assert_eq!(error.class().unwrap().retry, Retry::Safe, "{error}"),
        }
        assert!(Instant::now() < deadline, "the server does not recover");
    };
    assert_eq!(number(&mut again, "SELECT 1::bigint"), 1);
}
