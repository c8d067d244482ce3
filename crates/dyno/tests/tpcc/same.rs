//! The same inputs on every engine leave the same rows.

use dyno_postgres::{Cluster, Installation, Options};
use dyno_rigs::txn::{DynoProcesses, DynoServer, EtcdNodes};
use dyno_tpcc::Layout;
use dyno_txn_api::Target;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::{checked, dyno, loaded, loaded_as, program, said};

/// One terminal, so that transactions have one order.
fn run(target: &Target, form: &str, more: &[&str]) {
    let on = target.to_string();
    let words = [
        &[
            "tpcc",
            "run",
            "--on",
            &on,
            "--form",
            form,
            "--clients",
            "1",
            "--transactions",
            "150",
            "--json",
        ][..],
        more,
    ]
    .concat();
    let (code, out, err) = said(&mut dyno(&words));
    assert_eq!(code, Some(0), "{on} {form}: {out}{err}");
    let figures: Value = serde_json::from_str(&out).expect("JSON");
    assert!(figures["incomplete"].is_null(), "{figures}");
}

/// Rows and their checksum after the run.
fn sums(target: &Target, form: &str, more: &[&str]) -> (u64, String) {
    loaded(target);
    sums_of_loaded(target, form, more)
}

fn sums_of_loaded(target: &Target, form: &str, more: &[&str]) -> (u64, String) {
    run(target, form, more);
    let found = checked(target, &[]);
    let rows = found["rows"].as_u64().expect("a number");
    (rows, found["checksum"].as_str().expect("text").to_owned())
}

#[test]
fn all_engines_and_forms_come_to_the_same_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = |name: &str| folder.path().join(name);
    let wanted = sums(&Target::Local(here("in-process")), "one-shot", &[]);
    // A database whose lines are not packed, as older programs have loaded it.
    let older = Target::Local(here("older"));
    loaded_as(&older, Layout::Rows);
    let found = sums_of_loaded(&older, "one-shot", &[]);
    assert_eq!(found, wanted, "lines as rows");

    for (name, form, more) in [
        ("ring", "one-shot", &[][..]),
        ("tcp", "interactive", &["--no-ring"][..]),
    ] {
        let server = DynoServer::start(program(), &here(name), &["--partitions", "3"]);
        let server = server.expect("it starts");
        assert_eq!(sums(&server.target(), form, more), wanted, "{name}");
    }
    // The rows of a warehouse lie in three processes, and stamps come from a fourth.
    let place = here("processes");
    fs::create_dir(&place).expect("it is ours");
    let processes = DynoProcesses::start(program(), &place, 3, 1, &["--partitions", "6"]);
    let processes = processes.expect("they start");
    let found = sums(&processes.target(), "one-shot", &[]);
    assert_eq!(found, wanted, "three processes");
    drop(processes);
    match EtcdNodes::missing() {
        Some(why) => println!("skipped: {why}"),
        None => {
            let nodes = EtcdNodes::start(folder.path(), 3).expect("they start");
            assert_eq!(sums(&nodes.target(), "batched", &[]), wanted, "etcd");
        }
    }
}

#[test]
fn databases_of_postgresqls_wire_come_to_the_same_rows() {
    if let Err(error) = Installation::find(None) {
        println!("skipped: PostgreSQL: {error}");
        return;
    }
    let folder = tempfile::Builder::new()
        .prefix("dyno-tpcc-")
        .tempdir_in("/tmp")
        .expect("a folder");
    // The server's user is another one where root runs the test.
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), all).expect("it is ours");
    let wanted = sums(&Target::Local(folder.path().join("ours")), "one-shot", &[]);
    for (number, (form, isolation)) in [
        ("one-shot", "serializable"),
        ("batched", "serializable"),
        ("interactive", "read-committed"),
    ]
    .into_iter()
    .enumerate()
    {
        let place = folder.path().join(format!("server-{number}"));
        let cluster = Cluster::open(&place, Options::small()).expect("it starts");
        let target = Target::Postgres(cluster.dsn().text());
        let found = sums(&target, form, &["--isolation", isolation]);
        assert_eq!(found, wanted, "{form} {isolation}");
    }
}
