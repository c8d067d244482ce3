//! What arrives, in which types, and what a second load does.

use std::fs;

use dyno_ingest::load::{Before, Outcome};
use dyno_ingest_clickhouse::private_server::Config;
use dyno_ingest_clickhouse::{Password, Settings, status};

use crate::scene::{Scene, check_table, failure, load, loaded_rows, options, settings, try_load};

#[test]
fn archives_arrive_whole_and_once() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let address = scene.address("wspr.bronze");
    let archives = scene.archives("first", 60_000, 3, 0.0);
    let reports = load(&archives, &address, &settings());
    assert_eq!(reports.iter().map(loaded_rows).sum::<u64>(), 60_000);
    check_table(&scene.server, "wspr.bronze", &archives);
    assert_eq!(scene.tables_with("_dyno_"), "", "stages and lock are gone");

    let again = load(&archives, &address, &settings());
    let there = |outcome: &Outcome| matches!(outcome, Outcome::AlreadyThere { .. });
    assert!(again.iter().all(|report| there(&report.outcome)));
    check_table(&scene.server, "wspr.bronze", &archives);

    // The second month grows; the others stay.
    let grown = scene.archives("second", 90_000, 3, 0.0);
    let report = load(&grown[1..2], &address, &settings()).remove(0);
    assert!(matches!(
        report.outcome,
        Outcome::Loaded {
            before: Before::Earlier,
            ..
        }
    ));
    let now = [archives[0].clone(), grown[1].clone(), archives[2].clone()];
    check_table(&scene.server, "wspr.bronze", &now);

    // A partition that was removed by hand comes back.
    scene.ask("ALTER TABLE wspr.bronze DROP PARTITION 202301");
    load(&archives[..1], &address, &settings());
    check_table(&scene.server, "wspr.bronze", &now);

    let status = status(&address, &Password::default()).unwrap();
    let names: Vec<&str> = status.archives.iter().map(|e| e.archive.as_str()).collect();
    assert_eq!(names, ["wspr/2023-01", "wspr/2023-02", "wspr/2023-03"]);
    assert_eq!(
        status.rows,
        status.archives.iter().map(|e| e.rows).sum::<u64>()
    );
}

/// A table may have its strings as dictionaries or as plain strings, and then no row is too long.
#[test]
fn strings_arrive_in_the_types_that_the_table_has() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let archives = scene.archives("some", 30_000, 1, 0.0);
    let dictionaries = Settings {
        dictionary_types: true,
        connections: 2,
        ..settings()
    };
    load(&archives, &scene.address("wspr.coded"), &dictionaries);
    check_table(&scene.server, "wspr.coded", &archives);
    let kind = "SELECT type FROM system.columns WHERE table = 'coded' AND name = 'callsign'";
    assert_eq!(scene.ask(kind), "LowCardinality(String)");

    scene.ask(
        "CREATE TABLE wspr.plain (id UInt64, timestamp DateTime, reporter String, \
         reporter_grid FixedString(9), snr Int8, frequency UInt64, callsign String, grid String, \
         power Int8, drift Int8, distance UInt32, azimuth UInt16, band Int32, mode String, \
         version String, code UInt8, column_count UInt8, more String DEFAULT 'x') \
         ENGINE = MergeTree PARTITION BY toYYYYMM(timestamp) ORDER BY id",
    );
    load(&archives, &scene.address("wspr.plain"), &settings());
    check_table(&scene.server, "wspr.plain", &archives);
    assert_eq!(scene.ask("SELECT DISTINCT more FROM wspr.plain"), "x");
}

#[test]
fn bad_rows_are_kept_in_the_database_with_line_and_reason() {
    let Some(scene) = Scene::new(&Config::default()) else {
        return;
    };
    let mut text = fs::read_to_string(&scene.archives("some", 1_000, 1, 0.0)[0]).unwrap();
    let good = text.clone();
    text.push_str("no row\n");
    text.push_str("7,1672531200,AB1C,AA00,-5,14.097100,D2E,BB11,30,0,100,20,14,longer-than-8,0\n");
    let path = scene.folder.path().join("wsprspots-2023-01.csv");
    fs::write(&path, text).unwrap();
    let address = scene.address("wspr.bronze");

    let strict = dyno_ingest::load::Options {
        max_bad: 0.001,
        ..options()
    };
    let files = [path.clone()];
    let report = try_load(&files, &address, &settings(), &strict).unwrap();
    let refused = failure(&report.archives[0]);
    assert!(refused.contains("2 of 1002 rows are bad"), "{refused}");
    assert!(refused.contains("wspr.bronze_rejected"), "{refused}");
    assert_eq!(scene.ask("SELECT count() FROM wspr.bronze"), "0");
    assert_eq!(scene.ask("SELECT count() FROM wspr.bronze_rejected"), "2");

    let report = load(&files, &address, &settings()).remove(0);
    assert_eq!(loaded_rows(&report), 1_000);
    let good_path = scene.folder.path().join("good.csv");
    fs::write(&good_path, good).unwrap();
    check_table(&scene.server, "wspr.bronze", &[good_path]);
    let kept = scene.ask("SELECT line, reason, raw FROM wspr.bronze_quarantine ORDER BY line");
    let kept: Vec<&str> = kept.lines().collect();
    assert_eq!(
        kept[0],
        "0\tspot 7: column version is FixedString(8) and its value has 13 bytes\t\
         7,1672531200,AB1C,AA00,-5,14.097100,D2E,BB11,30,0,100,20,,longer-than-8,0"
    );
    assert!(
        kept[1].starts_with("1001\t") && kept[1].ends_with("\tno row"),
        "{}",
        kept[1]
    );
    assert_eq!(kept.len(), 2);
}

/// With a limit of ten parts the load waits for merges, and says so; nothing is refused.
#[test]
fn a_server_that_merges_slowly_is_waited_for() {
    let config = Config {
        xml: "<merge_tree><parts_to_delay_insert>10</parts_to_delay_insert>\
              <parts_to_throw_insert>11</parts_to_throw_insert></merge_tree>"
            .to_owned(),
        ..Config::default()
    };
    let Some(scene) = Scene::new(&config) else {
        return;
    };
    let archives = scene.archives("some", 400_000, 1, 0.0);
    let little = dyno_ingest::load::Options {
        workers: 1,
        memory: 104 << 20,
        ..options()
    };
    let address = scene.address("wspr.bronze");
    let report = try_load(&archives, &address, &settings(), &little).unwrap();
    let Outcome::Loaded { server, .. } = &report.archives[0].outcome else {
        panic!("{:?}", report.archives[0].outcome);
    };
    let server = server.unwrap();
    println!("{server:?}");
    assert!(server.blocks > 15, "{server:?}");
    assert!((5..=10).contains(&server.parts_most), "{server:?}");
    check_table(&scene.server, "wspr.bronze", &archives);
}
