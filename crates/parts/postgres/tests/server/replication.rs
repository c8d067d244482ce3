//! Two and three nodes: a commit waits, a primary dies, a standby takes over, nothing acknowledged
//! is lost.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::place::{client, number, open, place};
use dyno_postgres::standby::{followers, furthest, wait_streaming};
use dyno_postgres::{
    Cluster, Dsn, Listen, Notices, Options, PgError, Session, Synchronous, connect,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn standby(dir: &Path, primary: &Dsn, name: &str) -> Cluster {
    Cluster::open_standby(&dir.join(name), Options::small(), primary, name).unwrap()
}

/// Inserts until the server is gone, and returns the numbers whose commit was acknowledged.
fn insert_until_lost(dsn: &Dsn) -> Vec<i64> {
    let mut sql = connect(dsn, &Session::named("writer")).unwrap();
    let insert = sql.prepare("INSERT INTO t VALUES ($1)").unwrap();
    (0..)
        .take_while(|n| sql.execute(&insert, &[n]).is_ok())
        .collect()
}

/// Kills all of the primary under the hands of a writer; what was acknowledged.
fn acknowledged_until_killed(primary: &mut Cluster) -> Vec<i64> {
    let dsn = primary.dsn();
    let writer = thread::spawn(move || insert_until_lost(&dsn));
    let mut watch = client(primary);
    while number(&mut watch, "SELECT count(*) FROM t") < 200 {}
    primary.kill_all().unwrap();
    writer.join().unwrap()
}

fn missing(sql: &mut dyno_postgres::postgres::Client, acknowledged: &[i64]) -> i64 {
    let ask = "SELECT count(*) FROM unnest($1::bigint[]) AS a(n) WHERE n NOT IN (SELECT n FROM t)";
    sql.query_one(ask, &[&acknowledged]).unwrap().get(0)
}

#[test]
fn two_nodes_keep_what_was_acknowledged_when_the_primary_dies() {
    let Some(place) = place() else { return };
    let dir = place.path();
    let mut primary = open(&dir.join("first"));
    let mut sql = client(&primary);
    sql.batch_execute("CREATE TABLE t (n bigint PRIMARY KEY)")
        .unwrap();
    let mut second = standby(dir, &primary.dsn(), "a");
    wait_streaming(&mut sql, "a", PATIENCE).unwrap();
    primary
        .set_synchronous(&Synchronous::first(1, &["a"]), PATIENCE)
        .unwrap();
    assert_eq!(followers(&mut sql).unwrap()[0].sync_state, "sync");

    let acknowledged = acknowledged_until_killed(&mut primary);
    second.promote().unwrap();
    let mut sql = client(&second);
    assert_eq!(missing(&mut sql, &acknowledged), 0);
    sql.execute("INSERT INTO t VALUES (-1)", &[]).unwrap();

    let old = primary.dir().to_path_buf();
    primary.depose(&second.dsn()).unwrap();
    let error = Cluster::open(&old, Options::small()).unwrap_err();
    assert!(matches!(error, PgError::Deposed { .. }), "{error}");

    let rebuilt = Cluster::rebuild(&old, Options::small(), &second.dsn(), "b").unwrap();
    wait_streaming(&mut sql, "b", PATIENCE).unwrap();
    second
        .set_synchronous(&Synchronous::any(1, &["b"]), PATIENCE)
        .unwrap();
    sql.execute("INSERT INTO t VALUES (-2)", &[]).unwrap();
    assert!(rebuilt.is_standby());
    let error = client(&rebuilt).execute("INSERT INTO t VALUES (-3)", &[]);
    let class = dyno_postgres::Class::from_error(&error.unwrap_err());
    assert_eq!(class.code, "not-primary");
}

#[test]
fn of_three_nodes_the_furthest_takes_over_and_the_other_follows() {
    let Some(place) = place() else { return };
    let dir = place.path();
    let mut primary = open(&dir.join("first"));
    let mut sql = client(&primary);
    sql.batch_execute("CREATE TABLE t (n bigint PRIMARY KEY)")
        .unwrap();
    let mut nodes = vec![
        standby(dir, &primary.dsn(), "a"),
        standby(dir, &primary.dsn(), "b"),
    ];
    for name in ["a", "b"] {
        wait_streaming(&mut sql, name, PATIENCE).unwrap();
    }
    let any = Synchronous::any(1, &["a", "b"]);
    primary.set_synchronous(&any, PATIENCE).unwrap();

    let acknowledged = acknowledged_until_killed(&mut primary);
    let at = furthest(&nodes.iter().collect::<Vec<_>>())
        .unwrap()
        .unwrap();
    let mut new = nodes.remove(at);
    let mut other = nodes.remove(0);
    let name = if at == 0 { "b" } else { "a" };
    new.promote().unwrap();
    primary.depose(&new.dsn()).unwrap();
    other.follow(&new.dsn()).unwrap();
    let mut sql = client(&new);
    wait_streaming(&mut sql, name, PATIENCE).unwrap();
    new.set_synchronous(&Synchronous::first(1, &[name]), PATIENCE)
        .unwrap();
    assert_eq!(missing(&mut sql, &acknowledged), 0);
    sql.execute("INSERT INTO t VALUES (-1)", &[]).unwrap();

    // A restart of both keeps the roles and whom a commit waits for.
    new.restart().unwrap();
    other.restart().unwrap();
    let mut sql = client(&new);
    wait_streaming(&mut sql, name, PATIENCE).unwrap();
    sql.execute("INSERT INTO t VALUES (-2)", &[]).unwrap();
    assert_eq!(followers(&mut sql).unwrap()[0].sync_state, "sync");
}

#[test]
fn a_commit_waits_for_its_standby_and_a_cancelled_wait_is_heard() {
    let Some(place) = place() else { return };
    let dir = place.path();
    let mut primary = open(&dir.join("first"));
    let mut watch = client(&primary);
    watch
        .batch_execute("CREATE TABLE t (n bigint PRIMARY KEY)")
        .unwrap();
    let mut second = standby(dir, &primary.dsn(), "a");
    primary
        .set_synchronous(&Synchronous::first(1, &["a"]), PATIENCE)
        .unwrap();
    second.stop().unwrap();

    let notices = Arc::new(Notices::default());
    let session = Session {
        notices: Some(notices.clone()),
        ..Session::named("waiter")
    };
    let mut sql = connect(&primary.dsn(), &session).unwrap();
    let waiter = thread::spawn(move || sql.execute("INSERT INTO t VALUES (1)", &[]));
    let ask = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while number(&mut watch, ask) == 0 {}
    assert_eq!(number(&mut watch, "SELECT count(*) FROM t"), 0);
    watch
        .batch_execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
        )
        .unwrap();
    // The server calls it a success; only the notice tells.
    assert_eq!(waiter.join().unwrap().unwrap(), 1);
    assert_eq!(notices.unreplicated(), 1);

    let error = primary.set_synchronous(&Synchronous::any(2, &["a"]), PATIENCE);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("cannot wait for 2 of 1")
    );
    let error = Cluster::open_standby(&dir.join("x"), Options::small(), &primary.dsn(), "A b");
    assert!(error.unwrap_err().to_string().contains("a name has"));
}

/// What `dyno-cluster.json` says of the role, replaced: as a crash leaves it between note and deed.
fn note_role(dir: &Path, role: serde_json::Value) {
    let path = dir.join("dyno-cluster.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["role"] = role;
    std::fs::write(&path, value.to_string()).unwrap();
}

#[test]
fn a_promotion_or_a_copy_that_was_cut_is_finished() {
    let Some(place) = place() else { return };
    let dir = place.path();
    let primary = open(&dir.join("first"));
    client(&primary)
        .batch_execute("CREATE TABLE t (n bigint PRIMARY KEY)")
        .unwrap();
    drop(standby(dir, &primary.dsn(), "a"));
    drop(primary);

    note_role(&dir.join("a"), "primary".into());
    let new = open(&dir.join("a"));
    let mut sql = client(&new);
    sql.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
    assert_eq!(
        number(&mut sql, "SELECT pg_is_in_recovery()::int::bigint"),
        0
    );

    let role = serde_json::json!({ "standby": { "name": "b", "primary": "host=/nowhere" } });
    note_role(&dir.join("first"), role);
    let error = Cluster::open(&dir.join("first"), Options::small()).unwrap_err();
    assert!(error.to_string().contains("rebuild it"), "{error}");
    let small = Options::small();
    let copy = Cluster::open_standby(&dir.join("first"), small, &new.dsn(), "b").unwrap();
    wait_streaming(&mut sql, "b", PATIENCE).unwrap();
    assert!(copy.log_position().unwrap() > 0);
    assert_eq!(new.dsn().host(), dir.join("a/run").to_str().unwrap());
}

#[test]
fn a_promoted_standby_is_reached_over_tcp_with_its_own_password() {
    let Some(place) = place() else { return };
    let listening = || Options {
        listen: Some(Listen {
            address: "127.0.0.1".to_owned(),
            port: dyno_ports::free().unwrap(),
        }),
        ..Options::small()
    };
    let primary = Cluster::open(&place.path().join("first"), listening()).unwrap();
    let dir = place.path().join("a");
    let mut second = Cluster::open_standby(&dir, listening(), &primary.dsn(), "a").unwrap();
    drop(primary);
    second.promote().unwrap();
    let own = second.tcp_dsn().unwrap();
    let mut sql = connect(&own, &Session::named("test")).unwrap();
    assert_eq!(number(&mut sql, "SELECT 1::bigint"), 1);
}
