//! A server whose disk is full: the error says so, the table stays as it was, and with more room
//! the same load finishes. The disk is a small tmpfs in a mount namespace of its own, which goes
//! with its last process.

use std::process::Command;

use dyno_ingest_clickhouse::private_server::{Config, PrivateServer};

use crate::scene::{Scene, check_table, failure, load, settings};

const CHILD: &str = "DYNO_TEST_CHILD_DISK";
/// Holds the archive, and not the table beside it.
const SMALL: &str = "12m";
const LARGE: &str = "400m";

/// The test itself, where [`CHILD`] names the mounted disk.
#[test]
fn child_on_a_small_disk() {
    let Some(disk) = std::env::var_os(CHILD) else {
        return;
    };
    let scene = Scene::new(&Config::default()).unwrap();
    let address = scene.address("wspr.bronze");
    let archives = scene.archives("some", 120_000, 1, 0.0);
    let error = failure(&load(&archives, &address, &settings()).remove(0));
    assert!(error.contains("is full"), "{error}");
    assert_eq!(scene.ask("SELECT count() FROM wspr.bronze"), "0");

    let size = format!("remount,size={LARGE}");
    let grown = Command::new("mount").args(["-o", &size]).arg(disk).status();
    assert!(grown.unwrap().success());
    load(&archives, &address, &settings());
    check_table(&scene.server, "wspr.bronze", &archives);
    println!("loaded after all");
}

#[test]
fn a_full_disk_is_named_and_more_room_lets_the_load_finish() {
    if let Some(missing) = PrivateServer::missing() {
        println!("skipped: {missing}");
        return;
    }
    let disk = tempfile::tempdir().unwrap();
    let place = disk.path().display();
    let mount = format!("mount -t tmpfs -o size={SMALL} tmpfs '{place}'");
    let program = std::env::current_exe().unwrap();
    let child = format!(
        "set -e; {mount}; exec '{}' --exact full_disk::child_on_a_small_disk --nocapture",
        program.display()
    );
    for flags in ["-m", "-rm"] {
        let run = |script: &str| {
            Command::new("unshare")
                .args([flags, "sh", "-c", script])
                .env("TMPDIR", disk.path())
                .env(CHILD, disk.path())
                .output()
        };
        if !run(&mount).is_ok_and(|output| output.status.success()) {
            continue;
        }
        let output = run(&child).unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("loaded after all"), "{said}");
        return;
    }
    println!("skipped: clickhouse: a full disk: this system allows no tmpfs in a namespace");
}
