//! Tables of several feeds in one directory, as SQL sees them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use dyno_ingest::load::{Input, Options, Progress};
use dyno_ingest_feeds::calendar::Day;
use dyno_ingest_feeds::generate::{self, Making};
use dyno_ingest_feeds::{FEEDS, load, named};

fn answer(table: &Path, sql: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dyno-sql"))
        .args(["query", table.to_str().unwrap(), sql, "--format", "csv"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{sql}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn fill(table: &Path, feed: &'static str, files: Vec<PathBuf>) -> u64 {
    let inputs = files.into_iter().map(Input::File).collect();
    let options = Options {
        workers: 1,
        ..Options::default()
    };
    let report = load(
        named(feed).unwrap(),
        inputs,
        table,
        &options,
        &Progress::default(),
    )
    .unwrap();
    assert_eq!(report.failures().count(), 0);
    report.rows()
}

#[test]
fn each_feed_is_a_table_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("table");
    for feed in &FEEDS {
        let Some(format) = &feed.rows else { continue };
        let making = Making {
            rows: 3000,
            archives: 2,
            start: Day::new(2024, 1, 1),
            seed: 5,
            quirks: 0.0,
        };
        let folder = dir.path().join(feed.name);
        let made =
            generate::write(format, &making, &folder, &|_| {}, &AtomicBool::new(false)).unwrap();
        let rows = fill(&table, feed.name, made.files);
        let counted = answer(&table, &format!("SELECT count(*) FROM {}", feed.name));
        assert_eq!(counted.lines().nth(1).unwrap(), rows.to_string());
        let columns = answer(&table, &format!("SHOW COLUMNS FROM {}", feed.name));
        assert_eq!(columns.lines().count(), 1 + format.fields.len());
    }
    assert_eq!(
        answer(&table, "SELECT count(*) FROM spots"),
        "count(*)\n0\n"
    );
}

/// What was heard of a sender while the field was disturbed: two feeds in one question. Both ways
/// of grouping, by codes and by values, have the same answer.
#[test]
fn spots_join_the_indices_of_their_hour() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("table");
    let spot = |second: u32, de: &str, snr: &str| {
        format!("{de},K,NA,14025.1,20m,EA1RKV,EA,EU,CQ,{snr},2025-11-18 03:00:{second:02},25,CW\n")
    };
    let spots = dir.path().join("20251118.csv");
    let text: String = (0..60)
        .map(|second| {
            spot(
                second,
                ["W3LPL", "K5TR"][second as usize % 2],
                if second % 3 == 0 { "" } else { "18" },
            )
        })
        .collect();
    std::fs::write(&spots, text).unwrap();
    let indices = dir.path().join("kp.txt");
    std::fs::write(
        &indices,
        "2025 11 18 03.0 04.50 34290.12500 34290.18750  6.333   94 1\n\
         2025 11 18 06.0 07.50 34290.25000 34290.31250  0.667    3 1\n",
    )
    .unwrap();
    fill(&table, "rbn", vec![spots]);
    fill(&table, "solar", vec![indices]);
    let joined = "SELECT s.value, count(*) AS spots, count(r.snr) AS with_snr FROM rbn r JOIN solar s \
                  ON s.\"index\" = 'kp' AND r.timestamp >= s.timestamp \
                  AND r.timestamp < s.timestamp + INTERVAL '3 hours' GROUP BY s.value";
    assert_eq!(
        answer(&table, joined),
        "value,spots,with_snr\n6.333,60,40\n"
    );
    let grouped = "SELECT de_call, count(*) AS n, max(frequency) AS f, sum(snr) AS snr FROM rbn GROUP BY de_call \
                   ORDER BY de_call";
    let by_codes = answer(&table, grouped);
    assert_eq!(
        by_codes,
        "de_call,n,f,snr\nK5TR,30,14025100,360\nW3LPL,30,14025100,360\n"
    );
    let off = answer(
        &table,
        &format!("SET dyno.coded_aggregate = false; {grouped}"),
    );
    assert!(off.ends_with(&by_codes), "{off}");
}
