//! Files that come, change, are wrong, and go.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_ingest::table::Manifest;
use dyno_ingest_feeds::named;
use dyno_ingest_watch::{Folder, FolderSettings, FolderSummary, Metrics};
use dyno_serve::Registry;

use super::scene::{Said, archives, metrics, rows, table};

pub fn settings(folder: &Path) -> FolderSettings {
    FolderSettings {
        folder: folder.to_owned(),
        feed: None,
        settle: Duration::from_millis(20),
        every: Duration::from_millis(10),
        once: true,
    }
}

fn watch_once(folder: &Path, into: &Path, said: &Said) -> FolderSummary {
    let table = table(into, 0.001);
    let mut folder = Folder::new(settings(folder), &table, metrics());
    said.capture(|| folder.run(&Arc::default())).unwrap()
}

#[test]
fn files_of_all_feeds_are_loaded_once_and_again_when_they_change() {
    let home = tempfile::tempdir().unwrap();
    let (folder, into) = (home.path().join("in"), home.path().join("spots"));
    let files = archives(3_000, 2, 1, &folder);
    let rbn = "callsign,de_pfx,de_cont,freq,band,dx,dx_pfx,dx_cont,mode,db,date,speed,tx_mode\n\
               W1AW,K,NA,14025.1,20m,G3XYZ,G,EU,CQ,12,2024-11-23 00:00:01,25,CW\n";
    fs::write(folder.join("20241123.csv"), rbn).unwrap();
    fs::write(folder.join("half.csv.partial"), "1,").unwrap();
    let said = Said::default();
    let first = watch_once(&folder, &into, &said);
    assert_eq!((first.loaded, first.bad, first.rows), (3, 0, 3_001));
    let manifest = Manifest::read(&into).unwrap().unwrap();
    assert_eq!(manifest.archives["rbn/2024-11-23"].rows, 1);

    // Another process knows by the ledger that all of it is there.
    let again = watch_once(&folder, &into, &said);
    assert_eq!((again.loaded, again.there, again.bad), (0, 3, 0));

    let line = "9999999,1672531200,W1AW,FN31,-10,14.097037,K1ABC,FN42,37,0,200,45,14,2.6.1,0\n";
    let grown = fs::read_to_string(&files[0]).unwrap() + line;
    fs::write(&files[0], grown).unwrap();
    let grown = watch_once(&folder, &into, &said);
    assert_eq!((grown.loaded, grown.there), (1, 2));
    assert_eq!(said.count("replaced wspr/"), 1);
    let manifest = Manifest::read(&into).unwrap().unwrap();
    assert_eq!(manifest.rows(), 3_002);
}

/// A link that leads to itself cannot be examined.
#[test]
fn an_entry_that_cannot_be_examined_does_not_hold_up_the_others() {
    let home = tempfile::tempdir().unwrap();
    let (folder, into) = (home.path().join("in"), home.path().join("spots"));
    archives(500, 1, 1, &folder);
    std::os::unix::fs::symlink("loop.csv", folder.join("loop.csv")).unwrap();
    let (said, table) = (Said::default(), table(&into, 0.001));
    let mut watched = Folder::new(settings(&folder), &table, metrics());
    let error = said.capture(|| watched.run(&Arc::default())).unwrap_err();
    assert!(error.to_string().contains("loop.csv"), "{error}");
    let manifest = Manifest::read(&into).unwrap();
    assert_eq!(manifest.map(|manifest| manifest.rows()), Some(500));
}

#[test]
fn a_bad_file_is_told_of_once_and_tried_again_when_it_changes() {
    let home = tempfile::tempdir().unwrap();
    let (folder, into) = (home.path().join("in"), home.path().join("spots"));
    let files = archives(500, 1, 1, &folder);
    let good = fs::read(&files[0]).unwrap();
    let bad = folder.join("wsprspots-2024-05.csv.gz");
    fs::write(&bad, [0x1f, 0x8b, 8, 0, 0]).unwrap();
    fs::write(folder.join("letter.txt"), "Dear all,\n").unwrap();
    // The same archive under another name: which of the two is it?
    let name = files[0].file_name().unwrap().to_string_lossy().into_owned();
    fs::write(
        folder.join(format!("{name}.gz")),
        [&good[..], b"\n"].concat(),
    )
    .unwrap();

    let registry = Registry::new();
    let metrics = Metrics::new(&registry).unwrap();
    let (stop, table) = (Arc::new(AtomicBool::new(false)), table(&into, 0.001));
    let mut watched = Folder::new(
        FolderSettings {
            once: false,
            ..settings(&folder)
        },
        &table,
        metrics,
    );
    let said = thread::scope(|scope| {
        let stopping = Arc::clone(&stop);
        let watching = scope.spawn(move || {
            let said = Said::default();
            said.capture(|| watched.run(&stopping)).unwrap();
            said.lines()
        });
        let counted = |outcome: &str| {
            let text = registry.text();
            let name = format!("dyno_watch_archives_total{{outcome=\"{outcome}\"}} ");
            let line = text.lines().find(|line| line.starts_with(&name));
            line.unwrap()
                .rsplit_once(' ')
                .unwrap()
                .1
                .parse::<u64>()
                .unwrap()
        };
        until(|| counted("bad") == 3 && counted("loaded") == 1);
        fs::write(&bad, &good).unwrap();
        until(|| counted("loaded") == 2);
        assert_eq!(counted("bad"), 3);
        stop.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    let count = |part: &str| said.iter().filter(|said| said.contains(part)).count();
    assert_eq!(count("wsprspots-2024-05.csv.gz"), 1, "{said:?}");
    assert_eq!(count("it looks like no feed's"), 1, "{said:?}");
    assert_eq!(count("and so is"), 1, "{said:?}");
    assert_eq!(rows(&into).values().sum::<u32>(), 1_000);
}

#[test]
fn another_writer_is_waited_for_and_once_it_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let (folder, into) = (home.path().join("in"), home.path().join("spots"));
    archives(500, 1, 1, &folder);
    let writer = dyno_ingest::table::TableWriter::open(&into).unwrap();
    let table = table(&into, 0.001);
    let mut once = Folder::new(settings(&folder), &table, metrics());
    let error = once.run(&Arc::default()).unwrap_err();
    assert!(error.to_string().contains("written by another"), "{error}");
    let lasting = FolderSettings {
        once: false,
        ..settings(&folder)
    };
    let mut watched = Folder::new(lasting, &table, metrics());
    let stop = Arc::new(AtomicBool::new(false));
    let said = Said::default();
    thread::scope(|scope| {
        let stopping = Arc::clone(&stop);
        scope.spawn(|| {
            until(|| said.count("it is tried again") > 0);
            drop(writer);
            until(|| rows(&into).len() == 500);
            stop.store(true, Ordering::Relaxed);
        });
        let watching = said.capture(|| watched.run(&stopping));
        assert_eq!(watching.unwrap().loaded, 1);
    });
}

#[test]
fn a_feed_that_is_named_is_taken_for_every_file() {
    let home = tempfile::tempdir().unwrap();
    let (folder, into) = (home.path().join("in"), home.path().join("spots"));
    archives(500, 1, 1, &folder);
    let table = table(&into, 0.001);
    let named = FolderSettings {
        feed: named("psk"),
        ..settings(&folder)
    };
    let said = Said::default();
    let mut watched = Folder::new(named, &table, metrics());
    let summary = said.capture(|| watched.run(&Arc::default())).unwrap();
    assert_eq!((summary.loaded, summary.bad), (0, 1));
    assert_eq!(said.count("looks like feed wspr"), 1);
}

pub fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "not within a minute"
        );
        thread::yield_now();
    }
}
