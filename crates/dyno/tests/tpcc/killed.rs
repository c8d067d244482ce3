//! A server is killed in mid-run: the run says that it is incomplete, and what is left is
//! consistent.

use std::io::Read;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use dyno_rigs::txn::{DynoServer, EtcdNodes};
use dyno_tpcc::schema::{Tables, district_order, key};
use dyno_txn_api::{Row, Target, Transact};
use serde_json::Value;

use crate::{checked, dyno, loaded, opened, program};

/// Orders of all districts.
fn orders(target: &Target) -> u64 {
    let db = opened(target);
    let tables = Tables::find(&*db).expect("it was loaded");
    let mut orders = 0;
    for at in [[1, 1], [1, 2], [1, 3], [2, 1], [2, 2], [2, 3]] {
        let found = db.transact(|t| t.get(tables.district_order, &key(&at)));
        let found = found.expect("it answers").expect("the row is there");
        let row = Row::parse(&found).expect("a row");
        orders += row.u64(district_order::NEXT).expect("a number");
    }
    orders
}

/// Waits until a run has placed orders, so until it is in its middle.
fn wait_for_more(target: &Target, before: u64, more: u64) {
    let until = Instant::now() + Duration::from_secs(100);
    while orders(target) < before + more {
        assert!(Instant::now() < until, "no order is placed");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ours_is_killed_and_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("rows");
    let mut server = DynoServer::start(program(), &data, &[]).expect("it starts");
    let target = server.target();
    loaded(&target);
    for form in ["one-shot", "batched"] {
        let before = orders(&target);
        let on = target.to_string();
        let words = [
            "tpcc",
            "run",
            "--on",
            &on,
            "--form",
            form,
            "--clients",
            "4",
            "--duration",
            "120s",
            "--json",
        ];
        let mut run = dyno(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("dyno starts");
        wait_for_more(&target, before, 50);
        server.kill();
        let (mut out, mut err) = (String::new(), String::new());
        run.stdout
            .take()
            .expect("piped")
            .read_to_string(&mut out)
            .expect("text");
        run.stderr
            .take()
            .expect("piped")
            .read_to_string(&mut err)
            .expect("text");
        assert_eq!(run.wait().expect("it ends").code(), Some(2), "{err}");
        let figures: Value = serde_json::from_str(&out).expect("what was measured");
        assert!(figures["incomplete"].is_string(), "{figures}");
        assert!(err.contains("incomplete"), "{err}");
        server.start_again().expect("it recovers");
        checked(&target, &["--atomicity"]);
    }
}

#[test]
fn one_of_three_etcd_nodes_is_killed_and_the_run_goes_on() {
    if let Some(why) = EtcdNodes::missing() {
        println!("skipped: {why}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut nodes = EtcdNodes::start(folder.path(), 3).expect("they start");
    let target = nodes.target();
    loaded(&target);
    let before = orders(&target);
    let on = target.to_string();
    let words = [
        "tpcc",
        "run",
        "--on",
        &on,
        "--clients",
        "2",
        "--duration",
        "8s",
        "--json",
        "--attempts",
        "100",
    ];
    let run = dyno(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dyno starts");
    // The first one is the one that clients ask first, so that they must go to another.
    wait_for_more(&target, before, 5);
    nodes.kill(0);
    let output = run.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    // A commit under way at the kill may be cut short; what is never allowed is a condition that
    // does not hold.
    let code = output.status.code();
    assert!(
        code == Some(0) || err.contains("incomplete"),
        "{code:?} {err}"
    );
    checked(&target, &["--atomicity"]);
}
