//! A server ends with the process that owns it, and knows nothing of that process's secrets.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::{client, number, open, place};

/// Says to the other process where its cluster is.
const DIR: &str = "DYNO_TEST_CLUSTER";
const SECRET: &str = "0123456789abcdef-secret";

/// The other process: opens a cluster on a thread that ends, and then waits to be killed.
#[test]
#[ignore = "the other process of another test"]
fn an_owner_to_be_killed() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let opened = thread::spawn(move || open(Path::new(&dir)));
    let cluster = opened.join().unwrap();
    println!("postmaster {}", cluster.pids().postmaster.unwrap());
    thread::sleep(Duration::from_secs(600));
}

/// Starts the other process, and waits until its server runs.
fn owner(dir: &Path) -> (Child, u32) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "guarded::an_owner_to_be_killed",
            "--nocapture",
        ])
        .env(DIR, dir)
        .env("DYNO_TOKEN", SECRET)
        .env("PGPORT", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut pids = lines.map_while(Result::ok).filter_map(|line| {
        let (_, pid) = line.split_once("postmaster ")?;
        pid.trim().parse().ok()
    });
    (child, pids.next().unwrap())
}

/// Whether the process lives; a zombie does not.
fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('Z')
    })
}

fn ends(pid: u32) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while lives(pid) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    !lives(pid)
}

#[test]
fn a_server_stops_when_its_owner_is_killed_and_not_when_a_thread_of_it_ends() {
    let Some(place) = place() else { return };
    for signal in [libc::SIGKILL, libc::SIGTERM] {
        let dir = place.path().join(format!("signal-{signal}"));
        let (mut owner, postmaster) = owner(&dir);
        assert!(lives(postmaster));
        let sent = Command::new("kill")
            .args([format!("-{signal}"), owner.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        owner.wait().unwrap();
        assert!(ends(postmaster), "signal {signal}");
        // It was a shutdown in order, and the next owner starts it again.
        let log = fs::read_to_string(dir.join("log/server.log")).unwrap();
        assert!(log.contains("received fast shutdown request"), "{log}");
        number(&mut client(&open(&dir)), "SELECT 1::bigint");
    }
}

#[test]
fn a_server_gets_nothing_of_its_owners_environment_but_the_paths_of_programs() {
    let Some(place) = place() else { return };
    let (mut owner, postmaster) = owner(&place.path().join("one"));
    let environment = fs::read(format!("/proc/{postmaster}/environ")).unwrap();
    owner.kill().unwrap();
    owner.wait().unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let mut names: Vec<&str> = environment
        .split('\0')
        .filter_map(|variable| variable.split_once('=').map(|(name, _)| name))
        .collect();
    names.sort_unstable();
    names.retain(|name| !matches!(*name, "PATH" | "LD_LIBRARY_PATH"));
    // PostgreSQL sets the last ones itself.
    names.retain(|name| !name.starts_with("LC_") && !name.starts_with("PG"));
    assert_eq!(names, ["TZ"], "{environment}");
    assert!(!environment.contains(SECRET) && !environment.contains("PGPORT"));
    assert!(ends(postmaster));
}
