//! One archive in every packing gives one table, with either decoder and any number of workers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;
mod table_of;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Array, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt32Array,
};
use dyno_ingest::generate::{Generator, Month};
use dyno_ingest::load::{Engine, Input, Options, Outcome, Progress, load};
use dyno_ingest::table::Snapshot;
use oracle::{Row, checksum};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use table_of::arrow_file::{columns, with, write, write_columns};
use table_of::zip_file::{Entry, zip};
use table_of::{
    checksum_of, file, files_in, generate, good_rows, gunzip, gzip, lenient, load_file, load_files,
    loaded_rows, rows,
};

fn month(folder: &Path, rows: u64) -> (PathBuf, Vec<u8>) {
    let generator = Generator {
        rows,
        seed: 8,
        ..Generator::default()
    };
    let archive = generate(&generator, folder).remove(0);
    let text = gunzip(&archive, 0);
    (archive, text)
}

fn line_near_the_middle(text: &[u8]) -> usize {
    let half = text.len() / 2;
    half + 1 + text[half..].iter().position(|&b| b == b'\n').unwrap()
}

#[test]
fn every_packing_gives_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (archive, text) = month(folder, 12_000);
    let expected = good_rows(&text);
    let (first, second) = text.split_at(line_near_the_middle(&text));
    let unended = &first[..first.len() - 1];
    let members = [gzip(&text[..100_001]), gzip(b""), gzip(&text[100_001..])].concat();
    let arrow = folder.join("arrow.parquet");
    write(&arrow, columns(&expected));
    let files = [
        archive.clone(),
        file(folder, "plain.csv", &text),
        file(folder, "unended.csv", &text[..text.len() - 1]),
        file(folder, "members.csv.gz", &members),
        file(folder, "one.zip", &zip(&[Entry::deflated("a.csv", &text)])),
        file(
            folder,
            "several.zip",
            &zip(&[
                Entry::deflated("a.csv", unended),
                Entry::stored("empty.csv", b""),
                Entry::stored("dir/b.csv", second),
            ]),
        ),
        arrow,
    ];
    for engine in [Engine::Native, Engine::Portable] {
        for (at, file) in files.iter().enumerate() {
            let table = folder.join(format!("{engine:?}-{at}"));
            let options = Options {
                engine,
                workers: 1 + at % 2,
                ..lenient()
            };
            loaded_rows(&load_file(file, &table, &options));
            assert!(rows(&table) == expected, "{engine:?}, {}", file.display());
        }
    }
    let table = folder.join("Native-0");
    assert_eq!(checksum_of(&table), checksum(&expected));

    // The table's own file as an archive of another table.
    let ours = Snapshot::open(&table).unwrap().files().next().unwrap().0;
    let again = folder.join("again");
    loaded_rows(&load_file(&ours, &again, &lenient()));
    assert!(rows(&again) == expected);
}

/// Gives few bytes at a time, as a pipe does.
struct Trickle(Cursor<Vec<u8>>);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = buffer.len().min(777);
        self.0.read(&mut buffer[..n])
    }
}

#[test]
fn a_stream_gives_the_same_table_once() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, text) = month(folder.path(), 3_000);
    let expected = checksum(&good_rows(&text));
    for (at, bytes) in [fs::read(&archive).unwrap(), text].into_iter().enumerate() {
        let table = folder.path().join(format!("table-{at}"));
        let outcome = || {
            let reader = Box::new(Trickle(Cursor::new(bytes.clone())));
            let stream = Input::Stream("stdin".to_owned(), reader);
            let progress = Progress::default();
            let mut report = load(vec![stream], &table, &lenient(), &progress).unwrap();
            report.archives.remove(0).outcome
        };
        let first = outcome();
        assert!(
            matches!(first, Outcome::Loaded { rows: 3_000, .. }),
            "{first:?}"
        );
        assert_eq!(checksum_of(&table), expected);
        let before = files_in(&table);
        let again = outcome();
        assert!(
            matches!(again, Outcome::AlreadyThere { rows: 3_000 }),
            "{again:?}"
        );
        assert!(files_in(&table) == before, "nothing was written");
    }
}

#[test]
fn workers_do_not_change_a_byte_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator {
        rows: 30_000,
        months: 3,
        quirks: 0.01,
        ..Generator::default()
    };
    let archives = generate(&generator, folder.path());
    let load_with = |workers: usize| {
        let table = folder.path().join(format!("table-{workers}"));
        let options = Options {
            workers,
            ..lenient()
        };
        for report in load_files(&archives, &table, &options) {
            loaded_rows(&report);
        }
        let snapshot = Snapshot::open(&table).unwrap();
        let mut bytes = BTreeMap::new();
        for (identity, archive) in &snapshot.manifest().archives {
            let read = |path: &str| fs::read(table.join(path)).unwrap();
            let data = read(&archive.files[0].path);
            bytes.insert(
                identity.clone(),
                (data, read(archive.quarantine.as_ref().unwrap())),
            );
        }
        bytes
    };
    let one = load_with(1);
    assert_eq!(one.len(), 3);
    for workers in [2, 3, 5] {
        assert!(load_with(workers) == one, "{workers} workers");
    }
}

#[test]
fn little_memory_means_more_row_groups_and_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, text) = month(folder.path(), 60_000);
    let table = folder.path().join("table");
    let little = Options {
        memory: (96 << 20) + 16 * 1024 * 200,
        ..lenient()
    };
    loaded_rows(&load_file(&archive, &table, &little));
    let path = Snapshot::open(&table).unwrap().files().next().unwrap().0;
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    assert_eq!(reader.num_row_groups(), 4);
    assert!(rows(&table) == good_rows(&text));

    let less = Options {
        memory: little.memory - 1,
        ..lenient()
    };
    let inputs = vec![Input::File(archive)];
    let refused = load(inputs, &table, &less, &Progress::default()).unwrap_err();
    assert!(refused.to_string().contains("give at least"), "{refused}");
}

/// Dictionaries that outgrow their share start anew, and every value keeps its meaning.
#[test]
fn values_that_never_repeat_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for i in 0..50_000u64 {
        let (mhz, hz) = (i / 1_000, i * 7 % 1_000_000);
        text += &format!(
            "{i},{},RX{i}XX,AA{i},-21,{mhz}.{hz:06},TX{i}/LONGER-THAN-SIXTEEN,BB{i},23,-1,{},297,14,v{i},0\n",
            1_672_531_200 + i,
            i * 85_000,
        );
    }
    let archive = file(folder.path(), "unique.csv", text.as_bytes());
    let table = folder.path().join("table");
    let little = Options {
        memory: 110 << 20,
        ..lenient()
    };
    loaded_rows(&load_file(&archive, &table, &little));
    assert!(rows(&table) == good_rows(text.as_bytes()));
}

/// Distances beyond 2^31 look negative in the file: readers order them as unsigned.
#[test]
fn the_largest_values_come_back_and_statistics_hold_them() {
    let folder = tempfile::tempdir().unwrap();
    let line = |distance: u32| {
        format!(
            "18446744073709551615,4294967295,DK6UG,,-128,999999999999.999999499,,KM56,127,-128,\
             {distance},65535,14,,255\n"
        )
    };
    let text = line(5) + &line(u32::MAX) + &line(u32::MAX - 1) + &line(7);
    let expected = good_rows(text.as_bytes());
    let table = folder.path().join("table");
    let archive = file(folder.path(), "large.csv", text.as_bytes());
    loaded_rows(&load_file(&archive, &table, &lenient()));
    assert_eq!(rows(&table), expected);

    let ours = Snapshot::open(&table).unwrap().files().next().unwrap().0;
    let reader = SerializedFileReader::new(File::open(&ours).unwrap()).unwrap();
    let distance = reader.metadata().row_group(0).column(10).statistics();
    if let Some(Statistics::Int32(bounds)) = distance {
        let unsigned = |bound: Option<&i32>| bound.map(|&bound| bound as u32);
        if let (Some(min), Some(max)) = (unsigned(bounds.min_opt()), unsigned(bounds.max_opt())) {
            assert_eq!((min, max), (5, u32::MAX));
        }
    }
    let again = folder.path().join("again");
    loaded_rows(&load_file(&ours, &again, &lenient()));
    assert_eq!(rows(&again), expected);
}

#[test]
fn months_are_archives_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let start = Month {
        year: 2009,
        month: 12,
    };
    let generator = Generator {
        rows: 3_000,
        months: 3,
        start,
        ..Generator::default()
    };
    let archives = generate(&generator, folder.path());
    let table = folder.path().join("table");
    load_files(&archives, &table, &lenient());
    let by_archive = table_of::rows_by_archive(&table);
    let names: Vec<&str> = by_archive.keys().map(String::as_str).collect();
    assert_eq!(names, ["wspr/2009-12", "wspr/2010-01", "wspr/2010-02"]);
    for (archive, rows) in archives.iter().zip(by_archive.values()) {
        let expected: Vec<Row> = good_rows(&gunzip(archive, 0));
        assert!(*rows == expected, "{}", archive.display());
    }
}

/// A timestamp of every unit, with a time zone and without, nullable and not, is the moment that
/// its file says.
#[test]
fn timestamps_of_every_unit_and_zone_are_the_same_moments() {
    let folder = tempfile::tempdir().unwrap();
    let (_, text) = month(folder.path(), 3_000);
    let expected = good_rows(&text);
    let at = |per_second: i64| {
        let seconds = expected.iter().map(|row| i64::from(row.timestamp));
        seconds.map(move |second| second * per_second)
    };
    let mut arrays: Vec<(String, ArrayRef)> = vec![
        (
            "integers of 64 bits".to_owned(),
            Arc::new(Int64Array::from_iter_values(at(1))),
        ),
        (
            "integers of 32 bits".to_owned(),
            Arc::new(UInt32Array::from_iter_values(at(1).map(|s| s as u32))),
        ),
    ];
    for zone in [None, Some("UTC"), Some("+05:30"), Some("America/New_York")] {
        let s = TimestampSecondArray::from_iter_values(at(1));
        let ms = TimestampMillisecondArray::from_iter_values(at(1_000));
        let us = TimestampMicrosecondArray::from_iter_values(at(1_000_000));
        let ns = TimestampNanosecondArray::from_iter_values(at(1_000_000_000));
        let name = |unit: &str| format!("{unit}, zone {zone:?}");
        arrays.push((name("s"), Arc::new(s.with_timezone_opt(zone))));
        arrays.push((name("ms"), Arc::new(ms.with_timezone_opt(zone))));
        arrays.push((name("us"), Arc::new(us.with_timezone_opt(zone))));
        arrays.push((name("ns"), Arc::new(ns.with_timezone_opt(zone))));
    }
    for (number, (name, array)) in arrays.into_iter().enumerate() {
        for nullable in [true, false] {
            let path = folder.path().join(format!("spots-{number}.parquet"));
            let changed = with(columns(&expected), "timestamp", array.clone());
            write_columns(&path, changed, nullable);
            let table = folder.path().join(format!("of-{number}-{nullable}"));
            loaded_rows(&load_file(&path, &table, &lenient()));
            assert!(rows(&table) == expected, "{name}, nullable {nullable}");
        }
    }
}
