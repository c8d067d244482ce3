//! Tables with Iceberg metadata, as PyIceberg and DuckDB read them.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const TABLES: [&str; 8] = [
    "customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier",
];

/// The Python that has PyIceberg, DuckDB and its extension; `None`, which is then said, if they are
/// not installed.
fn interpreter(what: &str) -> Option<PathBuf> {
    let python = dyno_suite::peers_root().map(|root| root.join("iceberg/venv/bin/python"));
    let python = python.filter(|python| python.exists());
    if python.is_none() {
        println!("skipped: {what}: the readers of Iceberg are not installed (scripts/test)");
    }
    python
}

fn judge(python: &Path, arguments: &[&str]) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/iceberg/judge.py");
    let output = Command::new(python)
        .arg(script)
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn ran(folder: &Path, words: &str) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dyno"));
    command.current_dir(folder).args(words.split_whitespace());
    command.output().unwrap()
}

fn dyno(folder: &Path, words: &str) {
    let output = ran(folder, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "dyno {words}: {said}");
}

fn refused(folder: &Path, words: &str) -> String {
    let output = ran(folder, words);
    assert!(!output.status.success(), "dyno {words} should fail");
    String::from_utf8(output.stderr).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The Parquet files of a folder, as arguments of the judge.
fn parquet(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
        .map(|path| text(&path).to_owned())
        .collect();
    files.sort();
    files
}

fn by_files(python: &Path, files: &[String]) -> Value {
    let mut arguments = vec!["parquet"];
    arguments.extend(files.iter().map(String::as_str));
    judge(python, &arguments)
}

/// Generated archives, of which some feeds have a folder for each contest.
fn archives_in(folder: &Path, archives: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            archives_in(&path, archives);
        } else if !text(&path).ends_with(".planted.ndjson") {
            archives.push(text(&path).to_owned());
        }
    }
}

#[test]
fn a_table_of_each_feed_reads_like_one_without_the_catalogue() {
    let Some(python) = interpreter("feeds as Iceberg tables") else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    for feed in ["wspr", "rbn", "cabrillo", "psk", "solar"] {
        dyno(
            folder,
            &format!("ingest gen --feed {feed} --rows 4000 --months 2 --quirks 0.01 --out {feed}"),
        );
        let mut archives = Vec::new();
        archives_in(&folder.join(feed), &mut archives);
        archives.sort();
        let load = format!(
            "ingest load {} --feed {feed} --max-bad 20%",
            archives.join(" ")
        );
        dyno(folder, &format!("{load} --into {feed}-plain"));
        dyno(
            folder,
            &format!("{load} --into {feed}-ice --catalog iceberg"),
        );
        let plain = by_files(
            &python,
            &parquet(&folder.join(format!("{feed}-plain/data"))),
        );
        assert!(plain["rows"].as_u64().unwrap() > 1000, "{feed}: {plain}");
        let table = folder.join(format!("{feed}-ice"));
        for reader in ["pyiceberg", "duckdb"] {
            assert_eq!(
                judge(&python, &[reader, text(&table)]),
                plain,
                "{feed}, {reader}"
            );
        }
    }
}

#[test]
fn readers_see_each_load_and_prune_by_bounds_without_losing_rows() {
    let Some(python) = interpreter("snapshots of an Iceberg table") else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let month = |number| format!("archives/wsprspots-2023-0{number}.csv.gz");
    dyno(folder, "ingest gen --rows 30k --months 3 --out archives");
    for number in [1, 2, 3] {
        let flag = if number == 1 {
            " --catalog iceberg"
        } else {
            ""
        };
        dyno(
            folder,
            &format!("ingest load {} --into spots{flag}", month(number)),
        );
    }
    let table = folder.join("spots");
    let snapshots = judge(&python, &["snapshots", text(&table)]);
    let rows: Vec<u64> = snapshots
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .collect();
    assert!(
        rows.len() == 3 && rows.is_sorted() && rows[2] == 30_000,
        "{rows:?}"
    );

    let of_month = |reader, from: &str, to: &str| {
        let filter =
            format!("timestamp >= '{from}T00:00:00+00:00' AND timestamp < '{to}T00:00:00+00:00'");
        judge(&python, &[reader, text(&table), &filter])["rows"]
            .as_u64()
            .unwrap()
    };
    for reader in ["pyiceberg", "duckdb"] {
        assert_eq!(
            of_month(reader, "2023-02-01", "2023-03-01"),
            rows[1] - rows[0],
            "{reader}"
        );
        assert_eq!(of_month(reader, "2024-01-01", "2025-01-01"), 0, "{reader}");
    }

    // A month that has grown replaces the one that is there.
    dyno(folder, "ingest gen --rows 60k --months 3 --out grown");
    dyno(
        folder,
        "ingest load grown/wsprspots-2023-02.csv.gz --into spots",
    );
    let all = by_files(&python, &parquet(&table.join("data")));
    let now = judge(&python, &["pyiceberg", text(&table)]);
    let grown = judge(&python, &["snapshots", text(&table)]);
    assert_eq!(
        grown,
        serde_json::json!([now["rows"]]),
        "earlier states end"
    );
    assert_ne!(now, all, "the replaced file is there until the next load");
    dyno(
        folder,
        "ingest load grown/wsprspots-2023-02.csv.gz --into spots",
    );
    assert_eq!(by_files(&python, &parquet(&table.join("data"))), now);
    assert_eq!(judge(&python, &["duckdb", text(&table)]), now);
}

/// Checks that bounds of decimals, dates and text let readers leave out files, and no others.
fn prunes(python: &Path, table: &Path) {
    for reader in ["pyiceberg", "duckdb"] {
        for (filter, some) in [
            ("l_orderkey < 100", true),
            ("l_discount > 0.10", false),
            ("l_shipdate < '1990-01-01'", false),
            ("l_shipmode = 'AIR'", true),
            ("l_shipmode = 'ZEPPELIN'", false),
        ] {
            let rows = judge(python, &[reader, text(table), filter])["rows"]
                .as_u64()
                .unwrap();
            assert_eq!(rows > 0, some, "{reader}: {filter} has {rows} rows");
        }
    }
}

#[test]
fn tables_of_tpch_read_like_their_files_whole_in_parts_and_moved() {
    let Some(python) = interpreter("TPC-H as Iceberg tables") else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    dyno(folder, "tpch gen --sf 0.01 --out whole --catalog iceberg");
    dyno(
        folder,
        "tpch gen --sf 0.01 --parts 3 --out parts --catalog iceberg --mode zero-copy",
    );
    dyno(folder, "tpch gen --sf 0.01 --out plain");
    let check = |root: &Path, table: &str, wanted: &Value| {
        for reader in ["pyiceberg", "duckdb"] {
            let at = root.join(table);
            assert_eq!(
                &judge(&python, &[reader, text(&at)]),
                wanted,
                "{reader}: {}",
                at.display()
            );
        }
    };
    for table in TABLES {
        let plain = folder.join(format!("plain/{table}.parquet"));
        let plain = by_files(&python, &[text(&plain).to_owned()]);
        check(&folder.join("whole"), table, &plain);
        check(&folder.join("parts"), table, &plain);
    }
    // Spark's vectorised reader of Iceberg tables has no deltas of text.
    let encodings = judge(
        &python,
        &["encodings", text(&folder.join("whole/lineitem.parquet"))],
    );
    let comment = encodings["l_comment"].to_string();
    assert!(
        comment.contains("PLAIN") && !comment.contains("DELTA"),
        "{encodings}"
    );
    prunes(&python, &folder.join("whole/lineitem"));

    fs::rename(folder.join("whole"), folder.join("moved")).unwrap();
    dyno(folder, "tpch gen --sf 0.01 --out moved --catalog iceberg");
    let plain = by_files(
        &python,
        &[text(&folder.join("plain/orders.parquet")).to_owned()],
    );
    check(&folder.join("moved"), "orders", &plain);
    // The same command in the same place has nothing to write.
    let hint = folder.join("moved/orders/metadata/version-hint.text");
    dyno(folder, "tpch gen --sf 0.01 --out moved --catalog iceberg");
    assert_eq!(fs::read_to_string(&hint).unwrap(), "2");
    dyno(
        folder,
        "tpch gen --sf 0.02 --out moved --catalog iceberg --overwrite",
    );
    assert_eq!(fs::read_to_string(&hint).unwrap(), "3");
    assert_eq!(
        judge(&python, &["pyiceberg", text(&folder.join("moved/orders"))])["rows"],
        30_000
    );
}

#[test]
fn what_iceberg_cannot_describe_is_refused_before_anything_is_written() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    for (flags, reason) in [
        ("--format orc", "leave --format to parquet"),
        ("--mode baseline", "choose the mode zero-copy"),
        ("--part 1/2", "write all parts by --parts"),
        ("--sink null", "--sink null"),
    ] {
        let said = refused(
            folder,
            &format!("tpch gen --sf 0.01 --out new --catalog iceberg {flags}"),
        );
        assert!(said.contains(reason), "{flags}: {said}");
        assert!(!folder.join("new").exists(), "{flags}");
    }
    let said = refused(
        folder,
        "tpch gen --sf 0.01 --tables nation --out a%b --catalog iceberg",
    );
    assert!(said.contains("a percent sign"), "{said}");

    // Metadata of another program, in the place where that of a table would be.
    let theirs = folder.join("theirs/nation/metadata");
    fs::create_dir_all(&theirs).unwrap();
    fs::write(theirs.join("00000-af.metadata.json"), "{}").unwrap();
    let said = refused(
        folder,
        "tpch gen --sf 0.01 --tables nation --out theirs --catalog iceberg",
    );
    assert!(
        said.contains("another program manages this table"),
        "{said}"
    );
    assert!(!folder.join("theirs/nation.parquet").exists());

    dyno(folder, "ingest gen --rows 1000 --months 1 --out archives");
    dyno(
        folder,
        "ingest gen --feed rbn --rows 1000 --months 1 --out rbn",
    );
    let archive = "archives/wsprspots-2023-01.csv.gz";
    dyno(folder, &format!("ingest load {archive} --into plain"));
    let said = refused(
        folder,
        &format!("ingest load {archive} --into plain --catalog iceberg"),
    );
    assert!(said.contains("load them into a new table"), "{said}");
    dyno(
        folder,
        &format!("ingest load {archive} --into ice --catalog iceberg"),
    );
    let day = parquet_free(&folder.join("rbn"));
    let said = refused(
        folder,
        &format!("ingest load {day} --feed rbn --into ice --max-bad 20%"),
    );
    assert!(said.contains("load rbn into a table of its own"), "{said}");
    let said = refused(
        folder,
        &format!("ingest load {archive} --into clickhouse://x/y.z --catalog iceberg"),
    );
    assert!(said.contains("--catalog is for a directory"), "{said}");
}

/// The first file of a folder.
fn parquet_free(folder: &Path) -> String {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    text(&paths[0]).to_owned()
}

/// The blocks of Python in the book, run in the folder that the commands there make.
#[test]
fn the_python_of_the_page_works() {
    let Some(python) = interpreter("the Python of docs/engines/ingest/iceberg.md") else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    dyno(folder, "ingest gen --rows 10k --months 2 --out archives");
    dyno(
        folder,
        "ingest load archives/wsprspots-2023-01.csv.gz --into spots --catalog iceberg",
    );
    dyno(
        folder,
        "ingest load archives/wsprspots-2023-02.csv.gz --into spots",
    );
    dyno(
        folder,
        "tpch gen --sf 0.01 --tables lineitem --out tpch --catalog iceberg",
    );
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/engines/ingest/iceberg.md"
    );
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = page.split("```python\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let (code, _) = block.split_once("\n```").unwrap();
        let output = Command::new(&python)
            .current_dir(folder)
            .args(["-c", code])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{code}\n{said}");
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.starts_with("10000\n"), "{printed}");
    }
}
