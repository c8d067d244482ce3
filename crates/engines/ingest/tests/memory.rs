//! A load stays within the memory that it was given, whatever the data: peak resident memory of a
//! process that does nothing else.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;
mod table_of;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use dyno_ingest::generate::{Form, Generator};
use dyno_ingest::load::Options;
use dyno_ingest::table::Manifest;
use table_of::{child, file, generate, gzip, lenient};

const PEAK: &str = "peak bytes: ";

#[test]
fn child_that_loads() {
    if let Some(peak) = child::load_if_child() {
        println!("{PEAK}{peak}");
    }
}

fn check(files: &[PathBuf], options: &Options, rows: u64) {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let output = child::command("child_that_loads", files, &table, options)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert_eq!(Manifest::read(&table).unwrap().unwrap().rows(), rows);
    let peak = text
        .lines()
        .find_map(|line| line.split_once(PEAK))
        .unwrap()
        .1;
    let peak: usize = peak.parse().unwrap();
    println!(
        "{} files, {rows} rows: {peak} of {}",
        files.len(),
        options.memory
    );
    assert!(
        peak < options.memory,
        "{peak} bytes with {}",
        options.memory
    );
}

/// Archives of several members, so that a short text makes 1.5 M rows.
fn archives(folder: &tempfile::TempDir, count: usize) -> Vec<PathBuf> {
    let generator = Generator {
        rows: 50_000,
        form: Form::Plain,
        ..Generator::default()
    };
    let text = std::fs::read(&generate(&generator, folder.path())[0]).unwrap();
    let packed = gzip(&text).repeat(30 / count);
    (0..count)
        .map(|at| file(folder.path(), &format!("spots-{at}.csv.gz"), &packed))
        .collect()
}

#[test]
fn a_load_of_ordinary_spots_stays_within_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    for (files, workers, memory) in [(1, 2, 128 << 20), (1, 1, 512 << 20), (2, 2, 256 << 20)] {
        let options = Options {
            workers,
            memory,
            ..lenient()
        };
        check(&archives(&folder, files), &options, 1_500_000);
    }
}

/// Nothing repeats, so that every value is new to its dictionary.
#[test]
fn a_load_of_values_that_never_repeat_stays_within_its_memory() {
    const ROWS: u64 = 600_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unique.csv");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    for i in 0..ROWS {
        let (mhz, hz) = (i % 30, i * 7 % 1_000_000);
        writeln!(
            out,
            "{i},1672531200,RX{i}ABC,AA{i}B,-21,{mhz}.{hz:06},TX{i}ABC,BB{i}C,23,-1,{i},297,14,v{i},0"
        )
        .unwrap();
    }
    out.into_inner().unwrap().sync_all().unwrap();
    for memory in [112 << 20, 256 << 20] {
        let options = Options {
            workers: 2,
            memory,
            ..lenient()
        };
        check(std::slice::from_ref(&path), &options, ROWS);
    }
}
