//! Bad input: exit code 2, a message that names what and why, and nothing under a final name.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::{files, generate};

/// Words of a job, and what its refusal must say.
const CASES: [(&str, &str); 25] = [
    ("--sf 0 --out t", "scale factor 0: it must be a number from"),
    (
        "--sf -1 --out t",
        "scale factor -1: it must be a number from",
    ),
    ("--sf nan --out t", "scale factor NaN"),
    ("--sf inf --out t", "scale factor inf"),
    ("--sf many --out t", "invalid value 'many' for '--sf <N>'"),
    (
        "--sf 0.01 --out t --tables nation,orderz",
        "table \"orderz\": not a table of TPC-H; they are region nation",
    ),
    (
        "--sf 0.01 --out t --column l_colour=plain",
        "column \"l_colour\": it must be a column of the tables that are written",
    ),
    (
        "--sf 0.01 --out t --column l_comment=zstd:99",
        "from 1 to 22",
    ),
    (
        "--sf 0.01 --out t --column l_comment",
        "`l_comment` is not NAME=CHOICE",
    ),
    (
        "--sf 0.01 --out t --format avro",
        "format \"avro\": it must be parquet, orc, csv or tbl",
    ),
    (
        "--sf 0.01 --out t --part 9/8",
        "part 9 of 8: parts are numbered from 1",
    ),
    (
        "--sf 0.01 --out t --part 0/8",
        "part 0 of 8: parts are numbered from 1",
    ),
    (
        "--sf 0.01 --out t --part x",
        "part \"x\": it must be such as 2/8",
    ),
    (
        "--sf 0.01 --out t --part 1/8 --parts 8",
        "cannot be used with",
    ),
    ("--sf 0.01 --out t --parts 0", "0 is not in 1.."),
    (
        "--sf 0.01 --out t --memory 100MiB",
        "--memory of 104857600 bytes is too little",
    ),
    (
        "--sf 0.01 --sink stdout --tables nation,region",
        "standard output takes one file",
    ),
    (
        "--sf 0.01 --sink stdout --tables nation --json",
        "would mix on standard output",
    ),
    (
        "--sf 0.01 --out t --compression zlib",
        "none, snappy, zstd or lz4 for Parquet; zlib is for ORC",
    ),
    (
        "--sf 0.01 --out t --compression zstd:23",
        "zstd:1 to zstd:22",
    ),
    (
        "--sf 0.01 --out t --format csv --compression snappy",
        "csv files are not compressed here",
    ),
    (
        "--sf 0.01 --out t --page-version 3",
        "page-version \"3\": it must be 1 or 2",
    ),
    (
        "--sf 0.01 --out t --mode slow",
        "mode \"slow\": it must be baseline",
    ),
    ("--sf 0.01", "--out DIR says where the files go"),
    ("--sf 0.01 --sink null --out t", "nothing is written there"),
];

/// Runs a job that must fail; says what it says.
fn refusal(folder: &Path, words: &str) -> String {
    let output = generate(words).current_dir(folder).output();
    let output = output.expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{words}: {said}");
    assert_eq!(output.stdout, b"", "{words}");
    said
}

#[test]
fn bad_input_is_refused_with_what_and_why() {
    let folder = tempfile::tempdir().expect("a folder");
    for (words, why) in CASES {
        let said = refusal(folder.path(), words);
        assert!(said.contains(why), "{words}: {said}");
        assert_eq!(
            files(folder.path()).into_keys().collect::<Vec<_>>(),
            Vec::<PathBuf>::new()
        );
    }
}

#[test]
fn a_file_of_somebody_else_stops_the_job_before_it_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("region.csv"), "mine").expect("a file");
    let said = refusal(folder.path(), "--sf 0.01 --format csv --out .");
    assert!(said.contains("region.csv is there already"), "{said}");
    assert!(said.contains("--overwrite replaces it"), "{said}");
    let left = files(folder.path());
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[Path::new("region.csv")], b"mine");

    let words = "--sf 0.01 --format csv --tables region --out . --overwrite";
    let replaced = generate(words).current_dir(folder.path()).output();
    assert!(replaced.expect("the program starts").status.success());
    assert_ne!(files(folder.path())[Path::new("region.csv")], b"mine");
    // The same name, with other settings: not the file that is wanted.
    let words = "--sf 0.02 --format csv --tables region --out .";
    let said = refusal(folder.path(), words);
    assert!(said.contains("--sf 0.01 --format csv"), "{said}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).expect("a folder");
    fs::set_permissions(&locked, Permissions::from_mode(0o555)).expect("permissions");
    // Permissions do not stop root; the kernel's own file systems do.
    let places = [locked, PathBuf::from("/sys"), PathBuf::from("/proc")];
    let refuses = |place: &&PathBuf| fs::write(place.join("dyno-probe"), "").is_err();
    let Some(place) = places.iter().find(refuses) else {
        println!("skipped: tpch gen into an unwritable folder: this user can write everywhere");
        return;
    };
    let words = format!("--sf 0.01 --tables nation --out {}", place.display());
    let said = refusal(folder.path(), &words);
    let named = place.join(".nation.parquet.partial");
    assert!(said.contains(&named.display().to_string()), "{said}");

    let file = folder.path().join("file");
    fs::write(&file, "mine").expect("a file");
    let said = refusal(folder.path(), "--sf 0.01 --tables nation --out file");
    assert!(
        said.contains("file/nation.parquet: Not a directory"),
        "{said}"
    );
    assert_eq!(fs::read(&file).expect("still a file"), b"mine");
}
