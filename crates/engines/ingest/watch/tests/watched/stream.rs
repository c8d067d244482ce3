//! Records of a log: what is committed, with which offsets, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dyno_ingest::load::{self, Input, Options, Progress};
use dyno_ingest::table::{Manifest, stream_name};
use dyno_ingest_feeds::named;
use dyno_ingest_watch::{Batching, Stream, StreamSettings, StreamSummary, WatchError};

use super::lines::Lines;
use super::scene::{Said, archives, each_once, metrics, rows, table};

pub fn settings(records: u64) -> StreamSettings {
    StreamSettings {
        topic: "spots".to_owned(),
        feed: named("wspr").unwrap(),
        batching: Batching {
            records,
            bytes: 1 << 20,
            wait: Duration::from_secs(60),
        },
        skip_lost: false,
        once: true,
        patience: Duration::from_secs(5),
    }
}

fn watch(
    source: &mut Lines,
    into: &Path,
    settings: StreamSettings,
    said: &Said,
) -> Result<StreamSummary, WatchError> {
    let table = table(into, 1.0);
    let mut stream = Stream::new(settings, source, &table, metrics())?;
    said.capture(|| stream.run(&Arc::default()))
}

/// What a load of the file itself puts into a table.
pub fn loaded(file: &Path, into: &Path) -> BTreeMap<String, u32> {
    let inputs = vec![Input::File(file.to_owned())];
    let report = load::load(inputs, into, &Options::default(), &Progress::default()).unwrap();
    assert_eq!(report.failures().count(), 0);
    rows(into)
}

#[test]
fn a_topic_is_in_the_table_as_its_archive_would_be_and_is_gone_on_with() {
    let home = tempfile::tempdir().unwrap();
    let file = archives(4_000, 1, 1, home.path()).remove(0);
    let expected = loaded(&file, &home.path().join("direct"));
    let into = home.path().join("spots");
    let said = Said::default();
    let mut source = Lines::from_file(&file, 3);
    source.away = 1;
    source.end = Some(700);
    let first = watch(&mut source, &into, settings(100), &said).unwrap();
    assert_eq!(
        (first.records, first.rows, first.commits),
        (2_100, 2_100, 6)
    );
    assert_eq!(said.count("nobody listens; it is tried again"), 1);
    assert_eq!(each_once(&rows(&into), &expected), 2_100);

    source.end = None;
    source.most = 7;
    let rest = watch(&mut source, &into, settings(10), &said).unwrap();
    assert_eq!(rest.records, 1_900);
    assert_eq!(rows(&into), expected);
    let positions = Manifest::read(&into).unwrap().unwrap().positions();
    for (partition, next) in [(0, 1_334), (1, 1_333), (2, 1_333)] {
        let position = &positions[&stream_name("wspr", "spots", partition)];
        assert_eq!((position.next, position.rows), (next, next));
        assert!(position.missing.is_empty());
        // Some 46 commits each in this run: most have become one since.
        assert!(position.spans.len() < 30, "{}", position.spans.len());
    }
    let nothing = watch(&mut source, &into, settings(10), &said).unwrap();
    assert_eq!(nothing, StreamSummary::default());
    // Files that no span names any more are gone, too.
    let files = fs::read_dir(into.join("data")).unwrap().count();
    let spans: usize = positions
        .values()
        .map(|position| position.spans.len())
        .sum();
    assert_eq!(files, spans);
}

#[test]
fn bad_records_are_kept_aside_and_count() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("spots");
    let line = "7,1672531200,W1AW,FN31,-10,14.097037,K1ABC,FN42,37,0,200,45,14,2.6.1,0";
    let mut source = Lines {
        partitions: vec![vec![
            b"PK\x03\x04 is not an archive".to_vec(),
            Vec::new(),
            // Two lines in one record.
            format!("{line}\n8{}\n", &line[1..]).into_bytes(),
            b"no spot".to_vec(),
        ]],
        most: 10,
        ..Lines::default()
    };
    let said = Said::default();
    let summary = watch(&mut source, &into, settings(10), &said).unwrap();
    assert_eq!((summary.records, summary.rows, summary.bad_rows), (4, 2, 2));
    assert_eq!(said.count("bad rows are in quarantine"), 1);
    let manifest = Manifest::read(&into).unwrap().unwrap();
    assert_eq!((manifest.rows(), manifest.bad_rows()), (2, 2));
}

/// A record that looks like another feed's is alone in its batch, or is a header that is not ours.
/// The process would end with its batch, and the next one would read it again.
#[test]
fn a_record_that_would_refuse_a_file_is_only_kept_aside() {
    let home = tempfile::tempdir().unwrap();
    let header = "callsign,de_pfx,de_cont,freq,band,dx,dx_pfx,dx_cont,mode,db,date";
    let report = r#"{"sq":1,"f":14074000,"t":1769860800}"#;
    let spot = "W1AW-#,K,NA,14010.0,20m,K1ABC,K,NA,CQ,20,2010-07-01 00:00:01";
    let cases = [
        ("psk", report, "QSO: x"),
        ("rbn", spot, report),
        ("rbn", header, "callsign,freq"),
    ];
    for (number, (feed, first, odd)) in cases.into_iter().enumerate() {
        let mut source = Lines {
            partitions: vec![vec![first.into(), odd.into()]],
            most: 1,
            ..Lines::default()
        };
        let settings = StreamSettings {
            feed: named(feed).unwrap(),
            ..settings(1)
        };
        let into = home.path().join(number.to_string());
        let summary = watch(&mut source, &into, settings, &Said::default()).unwrap();
        let expected = (2, u64::from(first != header), 1);
        let found = (summary.commits, summary.rows, summary.bad_rows);
        assert_eq!(found, expected, "{feed}: {odd}");
    }
}

#[test]
fn what_retention_took_is_named_and_left_out_only_when_that_is_allowed() {
    let home = tempfile::tempdir().unwrap();
    let file = archives(1_000, 1, 1, home.path()).remove(0);
    let into = home.path().join("spots");
    let said = Said::default();
    let mut source = Lines::from_file(&file, 1);
    source.end = Some(200);
    watch(&mut source, &into, settings(100), &said).unwrap();
    source.end = None;
    source.first = 350;
    let error = watch(&mut source, &into, settings(100), &said).unwrap_err();
    let expected = "topic spots partition 0: offsets 200 to 349 are gone before they were loaded";
    assert!(error.to_string().starts_with(expected), "{error}");
    let skipping = StreamSettings {
        skip_lost: true,
        ..settings(100)
    };
    let summary = watch(&mut source, &into, skipping, &said).unwrap();
    assert_eq!((summary.records, summary.lost), (650, 150));
    let positions = Manifest::read(&into).unwrap().unwrap().positions();
    let position = &positions[&stream_name("wspr", "spots", 0)];
    assert_eq!(
        (position.next, &position.missing[..]),
        (1_000, &[(200, 349)][..])
    );

    source.first = 0;
    source.end = Some(900);
    let error = watch(&mut source, &into, settings(100), &said).unwrap_err();
    assert!(error.to_string().contains("ends at offset 900"), "{error}");
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("spots");
    let said = Said::default();
    for feed in ["cabrillo", "solar"] {
        let settings = StreamSettings {
            feed: named(feed).unwrap(),
            ..settings(10)
        };
        let error = watch(&mut Lines::default(), &into, settings, &said).unwrap_err();
        assert!(error.to_string().contains("watch a folder"), "{error}");
    }
    let mut gone = Lines {
        partitions: vec![Vec::new()],
        away: u32::MAX,
        ..Lines::default()
    };
    let impatient = StreamSettings {
        patience: Duration::from_millis(300),
        ..settings(10)
    };
    let error = watch(&mut gone, &into, impatient, &said).unwrap_err();
    assert!(error.to_string().contains("nobody listens"), "{error}");
    // Records of another feed than the one that is named.
    let file = archives(50, 1, 1, home.path()).remove(0);
    let psk = StreamSettings {
        feed: named("psk").unwrap(),
        ..settings(10)
    };
    let error = watch(&mut Lines::from_file(&file, 1), &into, psk, &said).unwrap_err();
    assert!(error.to_string().contains("offsets 0 to 49"), "{error}");
}
