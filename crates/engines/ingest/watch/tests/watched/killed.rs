//! A watch that is killed with signal 9 at any moment, again and again, loads each row once.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_ingest_watch::{Folder, FolderSettings, Stream, WatchError};

use super::lines::Lines;
use super::scene::{archives, each_once, metrics, rows, table};
use super::{folder, stream};

const FROM: &str = "DYNO_TEST_WATCH_FROM";
const INTO: &str = "DYNO_TEST_WATCH_INTO";
const KILLS: u32 = 24;

/// The environment of a child's watch; nothing in a process that is nobody's child.
fn asked() -> Option<(PathBuf, PathBuf)> {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    Some((path(FROM)?, path(INTO)?))
}

#[test]
fn child_with_a_folder() {
    if let Some((from, into)) = asked() {
        let table = table(&into, 0.001);
        let mut watched = Folder::new(folder::settings(&from), &table, metrics());
        let summary = watched.run(&Arc::default()).unwrap();
        assert_eq!(summary.bad, 0);
    }
}

#[test]
fn child_with_a_topic() {
    if let Some((from, into)) = asked() {
        let (mut source, table) = (Lines::from_file(&from, 3), table(&into, 1.0));
        source.most = 100;
        let mut watched =
            Stream::new(stream::settings(50), &mut source, &table, metrics()).unwrap();
        watched.run(&Arc::default()).unwrap();
    }
}

fn start(name: &str, from: &Path, into: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(FROM, from)
        .env(INTO, into)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Whether it was killed after `moment`, and had not ended by then.
fn killed_after(child: &mut Child, moment: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < moment {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return false;
        }
        std::thread::park_timeout(Duration::from_micros(200));
    }
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Kills the named child at moments over its whole life until there were enough, one between
/// commits too, looks at the table after each, and lets it end then.
fn killed_again_and_again(name: &str, from: &Path, home: &Path, check: &dyn Fn(&Path) -> usize) {
    let undisturbed = home.join("undisturbed");
    let begun = Instant::now();
    assert!(start(name, from, &undisturbed).wait().unwrap().success());
    let life = begun.elapsed();
    let all = check(&undisturbed);
    let (mut seed, mut kills, mut between) = (20_261_122_u64, 0, 0);
    for round in 0..80 {
        // A topic's life goes on where the one before was cut off, so that moments late in a whole
        // one find it over; a folder's is all waiting for files to settle but for its end, where
        // they take no time to load.
        let part = [0.6, 1.0][round % 2];
        let into = home.join(format!("round-{round}"));
        for _ in 0..8 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let share = (seed >> 11) as f64 / (1_u64 << 53) as f64;
            let mut child = start(name, from, &into);
            if !killed_after(&mut child, life.mul_f64(share * part)) {
                break;
            }
            kills += 1;
            let there = check(&into);
            between += u32::from(there > 0 && there < all);
        }
        assert!(start(name, from, &into).wait().unwrap().success());
        assert_eq!(check(&into), all, "round {round}");
        // Commits follow each other within milliseconds, so a kill between two of them takes some
        // luck.
        if kills >= KILLS && between > 0 {
            break;
        }
    }
    println!("{kills} kills, {between} of them between the first and the last commit");
    assert!(kills >= 20, "only {kills} kills found it alive");
    assert!(between > 0, "no kill came between commits");
}

#[test]
fn a_folder_is_in_the_table_once_whatever_is_killed_and_when() {
    let home = tempfile::tempdir().unwrap();
    let from = home.path().join("in");
    archives(12_000, 6, 3, &from);
    let direct = home.path().join("direct");
    let table = table(&direct, 0.001);
    let once = FolderSettings {
        ..folder::settings(&from)
    };
    let loaded: Result<_, WatchError> = Folder::new(once, &table, metrics()).run(&Arc::default());
    assert_eq!(loaded.unwrap().loaded, 6);
    let expected = rows(&direct);
    killed_again_and_again("killed::child_with_a_folder", &from, home.path(), &|into| {
        each_once(&rows(into), &expected)
    });
}

#[test]
fn a_topic_is_in_the_table_once_whatever_is_killed_and_when() {
    let home = tempfile::tempdir().unwrap();
    let from = archives(6_000, 1, 4, home.path()).remove(0);
    let expected = stream::loaded(&from, &home.path().join("direct"));
    killed_again_and_again("killed::child_with_a_topic", &from, home.path(), &|into| {
        each_once(&rows(into), &expected)
    });
}
