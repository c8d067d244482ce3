//! Makes archives, loads them, and reads tables back with arrow-rs, which shares nothing with the
//! writer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    dead_code,
    reason = "each test that includes this module uses another part of it"
)]

pub mod arrow_file;
pub mod child;
pub mod zip_file;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dyno_ingest::generate::Generator;
use dyno_ingest::load::{ArchiveReport, Input, Options, Outcome, Progress, load};
use dyno_ingest::table::Snapshot;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::oracle::{Row, checksum, parse};

/// One thread, all memory that one needs, and any number of bad rows.
pub fn lenient() -> Options {
    Options {
        workers: 1,
        max_bad: 1.0,
        ..Options::default()
    }
}

/// Writes the archives of `generator` and gives their paths.
pub fn generate(generator: &Generator, folder: &Path) -> Vec<PathBuf> {
    let go_on = |_| ControlFlow::Continue(());
    generator.write(folder, 2, &go_on).unwrap().files
}

/// Loads one file.
pub fn load_file(file: &Path, table: &Path, options: &Options) -> ArchiveReport {
    load_files(&[file.to_owned()], table, options).remove(0)
}

/// Loads files side by side.
pub fn load_files(files: &[PathBuf], table: &Path, options: &Options) -> Vec<ArchiveReport> {
    let inputs = files.iter().cloned().map(Input::File).collect();
    let report = load(inputs, table, options, &Progress::default()).unwrap();
    assert_eq!(report.archives.len(), files.len());
    report.archives
}

/// Good rows, or a panic with what went wrong instead.
pub fn loaded_rows(report: &ArchiveReport) -> u64 {
    match &report.outcome {
        Outcome::Loaded { rows, .. } => *rows,
        other => panic!("{}: {other:?}", report.path.display()),
    }
}

/// The error of a load that must have failed; it names the file.
pub fn failure(report: &ArchiveReport) -> String {
    match &report.outcome {
        Outcome::Failed(error) => {
            let text = error.to_string();
            let path = report.path.to_str().unwrap();
            assert!(text.contains(path), "{text} does not name {path}");
            text
        }
        other => panic!("{} should have failed: {other:?}", report.path.display()),
    }
}

/// All committed rows, archive by archive, each in its order.
pub fn rows(table: &Path) -> Vec<Row> {
    rows_by_archive(table).into_values().flatten().collect()
}

/// The committed rows of each archive.
pub fn rows_by_archive(table: &Path) -> BTreeMap<String, Vec<Row>> {
    rows_of(&Snapshot::open(table).unwrap())
}

/// The rows of an open snapshot; what the manifest says of its files must be true.
pub fn rows_of(snapshot: &Snapshot) -> BTreeMap<String, Vec<Row>> {
    let mut by_archive = BTreeMap::new();
    for (identity, archive) in &snapshot.manifest().archives {
        let mut rows = Vec::new();
        for file in &archive.files {
            let path = snapshot.table().join(&file.path);
            assert_eq!(fs::metadata(&path).unwrap().len(), file.bytes);
            let of_file = arrow_file::read(&path);
            assert_eq!(of_file.len() as u64, file.rows);
            let times = || of_file.iter().map(|row| i64::from(row.timestamp));
            assert_eq!(times().min(), Some(file.time_min_s));
            assert_eq!(times().max(), Some(file.time_max_s));
            rows.extend(of_file);
        }
        assert_eq!(rows.len() as u64, archive.rows);
        by_archive.insert(identity.clone(), rows);
    }
    by_archive
}

/// Checksum of all committed rows.
pub fn checksum_of(table: &Path) -> String {
    checksum(&rows(table))
}

/// What a table has on disk beside its locks: relative path to bytes.
pub fn files_in(table: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in ["", "data", "quarantine"] {
        for entry in fs::read_dir(table.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && path.extension() != Some("lock".as_ref()) {
                let relative = path.strip_prefix(table).unwrap().to_str().unwrap();
                files.insert(relative.to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// The text of a gzip file, trailing garbage left out.
pub fn gunzip(path: &Path, garbage_bytes: u64) -> Vec<u8> {
    let packed = fs::read(path).unwrap();
    let members = &packed[..packed.len() - garbage_bytes as usize];
    let mut text = Vec::new();
    MultiGzDecoder::new(members).read_to_end(&mut text).unwrap();
    text
}

/// One gzip member.
pub fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Rows that the slow parser finds in a text without bad ones.
pub fn good_rows(text: &[u8]) -> Vec<Row> {
    let (rows, bad) = parse(text);
    assert_eq!(bad, []);
    rows
}

/// Writes a file in `folder`.
pub fn file(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    File::create(&path).unwrap().write_all(bytes).unwrap();
    path
}

/// Copies a table's files, without its locks.
pub fn copy_table(from: &Path, to: &Path) {
    for folder in ["data", "quarantine"] {
        fs::create_dir_all(to.join(folder)).unwrap();
    }
    for (relative, bytes) in files_in(from) {
        fs::write(to.join(relative), bytes).unwrap();
    }
}
