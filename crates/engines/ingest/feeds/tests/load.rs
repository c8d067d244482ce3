//! Archives of every feed into a table, as readers that are not ours see it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(
    dead_code,
    reason = "the check against slow parsers is in agreement.rs"
)]
mod agree;
mod stored;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use dyno_ingest::Error;
use dyno_ingest::load::{Before, Chunk, Input, LoadReport, Options, Outcome, Progress};
use dyno_ingest::table::{Manifest, Snapshot};
use dyno_ingest_feeds::calendar::Day;
use dyno_ingest_feeds::generate::{self, Making, Summary};
use dyno_ingest_feeds::{FEEDS, Feed, Rows, feed_of_file, load, named};
use tempfile::TempDir;

/// The texts of a row group are found by 32-bit offsets.
#[test]
fn a_row_group_has_a_limit_however_much_memory_there_is() {
    let most = <Rows as Chunk>::most(1 << 40, 4);
    assert!(most <= 1 << 30, "{most} bytes");
}

fn options() -> Options {
    Options {
        workers: 2,
        max_bad: 0.5,
        memory: 64 << 20,
        ..Options::default()
    }
}

fn made(feed: &Feed, folder: &Path, rows: u64, quirks: f64) -> Summary {
    made_in(5, feed, folder, rows, quirks)
}

fn made_in(archives: u32, feed: &Feed, folder: &Path, rows: u64, quirks: f64) -> Summary {
    let making = Making {
        rows,
        archives,
        start: Day::new(2010, 12, 29),
        seed: 11,
        quirks,
    };
    generate::write(
        feed.rows.as_ref().unwrap(),
        &making,
        folder,
        &|_| {},
        &AtomicBool::new(false),
    )
    .unwrap()
}

fn loaded(feed: &'static Feed, files: &[PathBuf], table: &Path, options: &Options) -> LoadReport {
    // A program that another test starts has a copy of the table's lock for the moment between its
    // fork and its exec, so the lock may outlive the loader before.
    for _ in 0..100 {
        let inputs = files.iter().cloned().map(Input::File).collect();
        match load(feed, inputs, table, options, &Progress::default()) {
            Err(Error::Locked { .. }) => thread::sleep(Duration::from_millis(10)),
            loaded => return loaded.unwrap(),
        }
    }
    panic!("{} stays locked", table.display());
}

fn one(feed: &'static Feed, file: &Path, table: &Path) -> Outcome {
    let mut report = loaded(feed, &[file.to_owned()], table, &options());
    report.archives.remove(0).outcome
}

#[test]
fn what_was_made_is_what_others_read_and_nothing_is_loaded_twice() {
    let dir = TempDir::new().unwrap();
    let table = dir.path().join("table");
    let mut all = 0;
    for feed in FEEDS.iter().filter(|feed| feed.rows.is_some()) {
        let folder = dir.path().join(feed.name);
        let made = made(feed, &folder, 6000, 0.05);
        let report = loaded(feed, &made.files, &table, &options());
        assert_eq!(report.failures().count(), 0, "{:?}", report.archives);
        assert_eq!(report.rows(), made.rows, "{}", feed.name);
        let snapshot = Snapshot::open(&table).unwrap();
        let manifest = snapshot.manifest();
        let of_feed = || {
            manifest
                .archives
                .iter()
                .filter(|(_, archive)| archive.feed == feed.name)
        };
        assert_eq!(
            of_feed().map(|(_, archive)| archive.bad_rows).sum::<u64>(),
            made.bad
        );
        assert!(of_feed().all(|(identity, _)| identity.starts_with(&format!("{}/", feed.name))));
        assert_eq!(
            manifest
                .files_of(feed.name)
                .map(|file| file.rows)
                .sum::<u64>(),
            made.rows
        );
        all += made.files.len();
        assert_eq!(manifest.archives.len(), all, "feeds lie beside each other");
        for (file, path) in made
            .files
            .iter()
            .zip(stored::files(&snapshot, feed, &made.files))
        {
            let text = stored::text_of(file);
            assert_eq!(
                stored::rows(&path, feed),
                agree::read(feed, &text).rows,
                "{}",
                file.display()
            );
        }
        let again = loaded(feed, &made.files, &table, &options());
        assert_eq!(again.rows(), 0);
        let there = |outcome: &Outcome| matches!(outcome, Outcome::AlreadyThere { .. });
        assert!(again.archives.iter().all(|archive| there(&archive.outcome)));
    }
    stored::others_read(&Snapshot::open(&table).unwrap());
}

#[test]
fn an_archive_that_grew_takes_the_place_of_what_it_was() {
    let dir = TempDir::new().unwrap();
    let table = dir.path().join("table");
    let file = dir.path().join("20240101.csv");
    let line = "W3LPL,K,NA,14025.1,20m,EA1RKV,EA,EU,CQ,18,2024-01-01 18:01:00,25,CW\n";
    let feed = named("rbn").unwrap();
    fs::write(&file, line).unwrap();
    assert!(matches!(
        one(feed, &file, &table),
        Outcome::Loaded {
            rows: 1,
            before: Before::Nothing,
            ..
        }
    ));
    fs::write(&file, line.repeat(3)).unwrap();
    assert!(matches!(
        one(feed, &file, &table),
        Outcome::Loaded {
            rows: 3,
            before: Before::Earlier,
            ..
        }
    ));
    let snapshot = Snapshot::open(&table).unwrap();
    assert_eq!(snapshot.manifest().rows(), 3);
    assert!(snapshot.manifest().archives.contains_key("rbn/2024-01-01"));
    assert_eq!(fs::read_dir(table.join("data")).unwrap().count(), 1);
}

#[test]
fn a_file_of_another_feed_is_refused_by_its_name() {
    let dir = TempDir::new().unwrap();
    let wspr = dir.path().join("spots.csv");
    fs::write(
        &wspr,
        "1,1672531200,W1AW,FN31,-10,14.097037,K1ABC,FN42,37,0,200,45,14,2.6.1,0\n",
    )
    .unwrap();
    assert_eq!(feed_of_file(&wspr).unwrap(), Some("wspr"));
    let mut files = vec![("wspr", wspr)];
    for feed in FEEDS.iter().filter(|feed| feed.rows.is_some()) {
        for file in made(feed, &dir.path().join(feed.name), 200, 0.0).files {
            assert_eq!(
                feed_of_file(&file).unwrap(),
                Some(feed.name),
                "{}",
                file.display()
            );
            files.push((feed.name, file));
        }
    }
    for feed in FEEDS.iter().filter(|feed| feed.rows.is_some()) {
        for (of, file) in files.iter().filter(|(of, _)| *of != feed.name) {
            let table = dir.path().join("table");
            let Outcome::Failed(error) = one(feed, file, &table) else {
                panic!("{} took {}", feed.name, file.display());
            };
            let said = error.to_string();
            assert!(said.contains(&format!("--feed {of}")), "{said}");
            assert_eq!(Manifest::read(&table).unwrap(), None);
        }
    }
}

#[test]
fn wspr_is_loaded_like_every_feed_and_only_months_have_its_name_in_front() {
    let dir = TempDir::new().unwrap();
    let table = dir.path().join("table");
    let spot = "1,1672531200,W1AW,FN31,-10,14.097037,K1ABC,FN42,37,0,200,45,14,2.6.1,0\n";
    let files = ["wsprspots-2023-01.csv", "mine.csv"].map(|name| dir.path().join(name));
    files.iter().for_each(|file| fs::write(file, spot).unwrap());
    let wspr = named("wspr").unwrap();
    let roomy = Options {
        memory: 256 << 20,
        ..options()
    };
    assert_eq!(loaded(wspr, &files, &table, &roomy).rows(), 2);
    let manifest = Manifest::read(&table).unwrap().unwrap();
    let identities: Vec<&String> = manifest.archives.keys().collect();
    assert_eq!(identities, ["mine", "wspr/2023-01"]);
    assert!(
        manifest
            .archives
            .values()
            .all(|archive| archive.feed == "wspr")
    );
    assert_eq!(wspr.identity(Some("today"), &files[0]), "today");
    let rbn = named("rbn").unwrap();
    assert_eq!(rbn.identity(Some("today"), &files[0]), "rbn/today");
    assert_eq!(rbn.identity(Some("rbn/today"), &files[0]), "rbn/today");
}

#[test]
fn too_many_bad_lines_load_nothing_and_are_kept() {
    let dir = TempDir::new().unwrap();
    let table = dir.path().join("table");
    let file = dir.path().join("20240101.csv");
    let line = "W3LPL,K,NA,14025.1,20m,EA1RKV,EA,EU,CQ,18,2024-01-01 18:01:00,25,CW\n";
    fs::write(&file, format!("{line}{line}no spot\n")).unwrap();
    let feed = named("rbn").unwrap();
    let strict = Options {
        max_bad: 0.001,
        ..options()
    };
    let report = loaded(feed, std::slice::from_ref(&file), &table, &strict);
    let (_, error) = report.failures().next().unwrap();
    assert!(error.to_string().contains("1 of 3 rows are bad"), "{error}");
    assert_eq!(Manifest::read(&table).unwrap(), None);
    let kept = fs::read_dir(table.join("quarantine"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let text = fs::read_to_string(kept.path()).unwrap();
    assert!(
        text.contains("\"line\":3") && text.contains("no spot"),
        "{text}"
    );
}

#[test]
fn a_header_of_other_columns_loads_nothing() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("20240101.csv");
    let header = "callsign,de_pfx,de_cont,freq,band,dx,dx_pfx,dx_cont,db,mode,date,speed,tx_mode";
    fs::write(&file, format!("{header}\n")).unwrap();
    let Outcome::Failed(error) = one(named("rbn").unwrap(), &file, &dir.path().join("table"))
    else {
        panic!("it was loaded");
    };
    assert!(
        error.to_string().contains("line 1: its header is"),
        "{error}"
    );
}

#[test]
fn a_number_of_rows_that_is_not_true_is_said() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("20240101.csv");
    let line = "W3LPL,K,NA,14025.1,20m,EA1RKV,EA,EU,CQ,18,2024-01-01 18:01:00,25,CW\n";
    fs::write(&file, format!("{line}(2 rows)\n")).unwrap();
    let feed = named("rbn").unwrap();
    let report = loaded(feed, &[file], &dir.path().join("table"), &options());
    assert!(
        report.archives[0].warnings[0].contains("2 rows and has 1"),
        "{:?}",
        report.archives
    );
}

#[test]
fn identities_and_memory_are_checked_before_anything_is_read() {
    let dir = TempDir::new().unwrap();
    let feed = named("rbn").unwrap();
    let input = |path: &str| Input::File(PathBuf::from(path));
    let table = dir.path().join("table");
    let twice = vec![input("a/20240101.zip"), input("b/20240101.csv")];
    let error = load(feed, twice, &table, &options(), &Progress::default()).unwrap_err();
    assert!(error.to_string().contains("rbn/2024-01-01"), "{error}");
    let little = Options {
        memory: 1 << 20,
        ..options()
    };
    let error = load(
        feed,
        vec![input("a")],
        &table,
        &little,
        &Progress::default(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("--memory"), "{error}");
    assert!(!table.exists());
}

/// Row groups and dictionaries that end by memory and not by the number of rows.
#[test]
fn little_memory_gives_more_row_groups_and_the_same_rows() {
    let dir = TempDir::new().unwrap();
    let feed = named("psk").unwrap();
    let made = made_in(1, feed, &dir.path().join("psk"), 50_000, 0.0);
    let table = dir.path().join("table");
    let little = Options {
        workers: 1,
        memory: 32 << 20,
        ..options()
    };
    let report = loaded(feed, &made.files, &table, &little);
    assert_eq!(report.rows(), made.rows);
    let snapshot = Snapshot::open(&table).unwrap();
    let paths = stored::files(&snapshot, feed, &made.files);
    assert!(stored::row_groups(&paths[0]) > 1);
    let text = stored::text_of(&made.files[0]);
    assert_eq!(stored::rows(&paths[0], feed), agree::read(feed, &text).rows);
}
