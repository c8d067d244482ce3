//! The other feeds: the same rows as in a directory's Parquet files, once, whatever happens on the
//! way.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use dyno_ingest::load::{ArchiveReport, Before, Input, Options, Outcome, Progress};
use dyno_ingest::table::Snapshot;
use dyno_ingest_clickhouse::private_server::{Config, PrivateServer};
use dyno_ingest_clickhouse::{Address, Servers, Settings};
use dyno_ingest_feeds::calendar::Day;
use dyno_ingest_feeds::generate::{self, Making, Summary};
use dyno_ingest_feeds::{FEEDS, Feed, Kind, Location, RowFormat, named};

use crate::agree::Row;
use crate::scene::{Scene, ask, failure, loaded_rows, options, settings, try_load_of};
use crate::stored;

const SPOT: &str = "W3LPL,K,NA,14025.1,20m,EA1RKV,EA,EU,CQ,18,2024-01-01 18:01:00,25,CW\n";

fn format(feed: &Feed) -> &RowFormat {
    feed.rows.as_ref().unwrap()
}

fn made(feed: &Feed, folder: &Path, rows: u64, quirks: f64) -> Summary {
    let making = Making {
        rows,
        archives: 3,
        start: Day::new(2010, 12, 29),
        seed: 11,
        quirks,
    };
    generate::write(
        format(feed),
        &making,
        folder,
        &|_| {},
        &AtomicBool::new(false),
    )
    .unwrap()
}

fn load_with(
    feed: &'static Feed,
    files: &[PathBuf],
    address: &Address,
    settings: &Settings,
    options: &Options,
) -> Vec<ArchiveReport> {
    try_load_of(feed, files, address, settings, options)
        .unwrap()
        .archives
}

fn load(feed: &'static Feed, files: &[PathBuf], address: &Address) -> Vec<ArchiveReport> {
    load_with(feed, files, address, &settings(), &options())
}

/// The rows that the Parquet files of a directory have of these archives, by a reader that is not
/// ours.
fn in_parquet(feed: &'static Feed, files: &[PathBuf], table: &Path) -> Vec<Row> {
    let inputs = files.iter().cloned().map(Input::File).collect();
    let report =
        dyno_ingest_feeds::load(feed, inputs, table, &options(), &Progress::default()).unwrap();
    assert_eq!(report.failures().count(), 0, "{:?}", report.archives);
    let snapshot = Snapshot::open(table).unwrap();
    let paths = stored::files(&snapshot, feed, files);
    let mut rows: Vec<Row> = paths
        .iter()
        .flat_map(|path| stored::rows(path, feed))
        .collect();
    rows.sort_unstable();
    rows
}

/// The rows of a table, by the server's SQL: times in milliseconds, decimals in thousandths.
fn on_server(server: &PrivateServer, feed: &Feed, table: &str) -> Vec<Row> {
    let columns = format(feed).fields.iter().map(|field| {
        let name = format!("`{}`", field.name);
        match field.kind {
            Kind::Moment if format(feed).layout.seconds.contains(&field.name) => {
                format!("toInt64(toUInt32({name})) * 1000")
            }
            Kind::Thousandths => format!("toInt64({name} * 1000)"),
            _ => name,
        }
    });
    let columns: Vec<String> = columns.collect();
    let text = ask(
        server,
        &format!(
            "SELECT {} FROM {table} FORMAT TabSeparated",
            columns.join(", ")
        ),
    );
    let value = |text: &str| (text != "\\N").then(|| unescaped(text));
    let mut rows: Vec<Row> = text
        .lines()
        .map(|line| line.split('\t').map(value).collect())
        .collect();
    rows.sort_unstable();
    rows
}

fn unescaped(text: &str) -> String {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        value.push(match c {
            '\\' => match chars.next().unwrap() {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                'b' => '\x08',
                'f' => '\x0c',
                other => other,
            },
            other => other,
        });
    }
    value
}

fn assert_same(feed: &Feed, found: &[Row], expected: &[Row]) {
    assert_eq!(found.len(), expected.len(), "{}", feed.name);
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{}", feed.name);
    }
}

#[test]
fn each_feed_arrives_whole_and_once_with_its_bad_rows_aside() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    for feed in FEEDS.iter().filter(|feed| feed.rows.is_some()) {
        let name = feed.name;
        let folder = scene.folder.path().join(name);
        let made = made(feed, &folder, 3_000, 0.05);
        let expected = in_parquet(feed, &made.files, &folder.join("table"));
        for (table, dictionary_types) in [("plain", false), ("coded", true)] {
            let table = format!("{name}.{table}");
            let address = scene.address(&table);
            let settings = Settings {
                dictionary_types,
                connections: 2,
                ..settings()
            };
            let load = || load_with(feed, &made.files, &address, &settings, &options());
            let reports = load();
            assert_eq!(reports.iter().map(loaded_rows).sum::<u64>(), made.rows);
            assert_same(feed, &on_server(&scene.server, feed, &table), &expected);
            let bad = scene.ask(&format!("SELECT count() FROM {table}_quarantine"));
            assert_eq!(bad, made.bad.to_string(), "{name}");
            let there = |outcome: &Outcome| matches!(outcome, Outcome::AlreadyThere { .. });
            assert!(load().iter().all(|report| there(&report.outcome)));
            assert_same(feed, &on_server(&scene.server, feed, &table), &expected);
        }
    }
    let sorted = "SELECT sorting_key FROM system.tables WHERE database = 'rbn' AND name = 'plain'";
    assert_eq!(scene.ask(sorted), "timestamp, band, dx_call");
    assert_eq!(scene.tables_with("_dyno_"), "", "stages and lock are gone");
}

#[test]
fn an_archive_that_grew_takes_the_place_of_its_own_rows_alone() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let feed = named("rbn").unwrap();
    let address = scene.address("rbn.bronze");
    let days = ["20240101.csv", "20240102.csv"].map(|name| scene.folder.path().join(name));
    // Both have rows of the same day, and are two archives for all that.
    days.iter().for_each(|day| fs::write(day, SPOT).unwrap());
    load(feed, &days, &address);
    fs::write(&days[0], SPOT.repeat(3)).unwrap();
    let report = load(feed, &days, &address).remove(0);
    assert!(matches!(
        report.outcome,
        Outcome::Loaded {
            rows: 3,
            before: Before::Earlier,
            ..
        }
    ));
    let rows = "SELECT archive, count() FROM rbn.bronze GROUP BY archive ORDER BY archive";
    assert_eq!(scene.ask(rows), "rbn/2024-01-01\t3\nrbn/2024-01-02\t1");
}

#[test]
fn rows_that_a_table_cannot_hold_are_bad_rows_of_it() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let feed = named("rbn").unwrap();
    let early = SPOT.replace("2024-01-01", "1969-12-31");
    let path = scene.folder.path().join("20240101.csv");
    fs::write(&path, format!("{SPOT}{early}no spot\n")).unwrap();
    let files = [path];
    let strict = Options {
        max_bad: 0.001,
        ..options()
    };
    let address = scene.address("rbn.bronze");
    let refused = failure(&load_with(feed, &files, &address, &settings(), &strict).remove(0));
    assert!(refused.contains("2 of 3 rows are bad"), "{refused}");
    assert_eq!(scene.ask("SELECT count() FROM rbn.bronze_rejected"), "2");

    assert_eq!(loaded_rows(&load(feed, &files, &address).remove(0)), 1);
    let kept = scene.ask("SELECT line, reason, raw FROM rbn.bronze_quarantine ORDER BY line");
    let kept: Vec<&str> = kept.lines().collect();
    assert!(
        kept[0]
            .starts_with("0\tcolumn timestamp is DateTime(\\'UTC\\') and its value -21540000 ms"),
        "{}",
        kept[0]
    );
    assert!(kept[0].contains("W3LPL,K,NA"), "{}", kept[0]);
    assert!(
        kept[1].starts_with("3\t") && kept[1].ends_with("\tno spot"),
        "{}",
        kept[1]
    );

    // A table of milliseconds holds it.
    let made = "SELECT replaceOne(create_table_query, 'DateTime(\\'UTC\\')', 'Int64') FROM system.tables \
                WHERE database = 'rbn' AND name = 'bronze' FORMAT TabSeparatedRaw";
    let wide = scene.ask(made).replace("rbn.bronze", "rbn.wide");
    scene.ask(&wide);
    assert_eq!(
        loaded_rows(&load(feed, &files, &scene.address("rbn.wide")).remove(0)),
        2
    );
    assert_eq!(
        scene.ask("SELECT min(timestamp) FROM rbn.wide"),
        "-21540000"
    );
}

#[test]
fn a_table_of_another_feed_is_refused() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let address = scene.address("feeds.bronze");
    let servers = Servers {
        address,
        settings: settings(),
    };
    let open = |feed| {
        let feed = named(feed).unwrap();
        (servers.rows(feed.name, format(feed)).open)()
    };
    open("rbn").unwrap();
    let error = open("solar");
    let error = error.err().unwrap().to_string();
    assert!(error.contains("it has no column hours"), "{error}");
}

#[test]
fn a_server_killed_in_mid_load_loses_and_doubles_nothing() {
    let Some(mut scene) = Scene::new(&Config::default()) else {
        return;
    };
    let feed = named("psk").unwrap();
    let folder = scene.folder.path().join("psk");
    let made = made(feed, &folder, 30_000, 0.0);
    let expected = in_parquet(feed, &made.files, &folder.join("table"));
    let begun = Instant::now();
    load(feed, &made.files, &scene.address("psk.whole"));
    let duration = begun.elapsed();
    let mut kills = 0;
    for round in 0..6 {
        let table = format!("psk.bronze_{round}");
        let address = scene.address(&table);
        let loading = thread::scope(|scope| {
            let loading = scope.spawn(|| load(feed, &made.files, &address));
            thread::sleep(duration.mul_f64(0.35).max(Duration::from_millis(10)));
            if !loading.is_finished() {
                scene.server.kill();
                scene.server.start_again().unwrap();
                kills += 1;
            }
            loading.join().unwrap()
        });
        loading.iter().for_each(|report| {
            loaded_rows(report);
        });
        assert_same(feed, &on_server(&scene.server, feed, &table), &expected);
        if kills > 0 {
            return;
        }
    }
    panic!("no kill found a load alive");
}
