//! The program as people run it.

use std::path::Path;
use std::process::{Command, Output};

use crate::tables::{self, Form, spot};

fn dyno_sql(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dyno-sql"))
        .args(args)
        .output()
        .unwrap()
}

fn query(table: &Path, sql: &str, more: &[&str]) -> Output {
    let mut args = vec!["query", table.to_str().unwrap(), sql];
    args.extend(more);
    dyno_sql(&args)
}

fn answer(table: &Path, sql: &str, more: &[&str]) -> String {
    let output = query(table, sql, more);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{sql}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(table: &Path, sql: &str) -> String {
    let output = query(table, sql, &[]);
    assert_eq!(output.status.code(), Some(2), "{sql}");
    assert!(output.stdout.is_empty(), "{sql}");
    String::from_utf8(output.stderr).unwrap()
}

fn three_spots() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let first = vec![spot(1, "K1ABC", -3), spot(2, "G8JNJ", 4)];
    let second = vec![spot(3, "K1ABC", -8)];
    tables::write(folder.path(), &[vec![first], vec![second]], Form::default());
    folder
}

const TOP: &str = "SELECT callsign, avg(snr) AS avg_snr, count(*) AS count FROM wspr.bronze \
                   GROUP BY callsign ORDER BY count DESC LIMIT 10";

#[test]
fn the_three_formats() {
    let table = three_spots();
    let table = table.path();
    assert_eq!(
        answer(table, TOP, &[]),
        "+----------+---------+-------+\n\
         | callsign | avg_snr | count |\n\
         +----------+---------+-------+\n\
         | K1ABC    | -5.5    | 2     |\n\
         | G8JNJ    | 4.0     | 1     |\n\
         +----------+---------+-------+\n"
    );
    assert_eq!(
        answer(table, TOP, &["--format", "csv"]),
        "callsign,avg_snr,count\nK1ABC,-5.5,2\nG8JNJ,4.0,1\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&answer(table, TOP, &["--format", "json"])).unwrap();
    let expected = serde_json::json!([
        {"callsign": "K1ABC", "avg_snr": -5.5, "count": 2},
        {"callsign": "G8JNJ", "avg_snr": 4.0, "count": 1},
    ]);
    assert_eq!(json, expected);
    let none = "SELECT id FROM spots WHERE id = 99";
    assert_eq!(answer(table, none, &["--format", "csv"]), "id\n");
    assert_eq!(answer(table, none, &["--format", "json"]), "[]\n");
}

#[test]
fn what_people_ask() {
    let table = three_spots();
    let csv = |sql: &str| answer(table.path(), sql, &["--format", "csv", "--threads", "2"]);
    assert_eq!(
        csv("SELECT count(*) AS n FROM \"default catalog\".wspr.bronze"),
        "n\n3\n"
    );
    assert_eq!(
        csv("SELECT id, timestamp FROM spots WHERE id = 1"),
        "id,timestamp\n1,2023-11-14T22:15:20Z\n"
    );
    assert_eq!(
        csv(
            "SELECT date_trunc('hour', timestamp) AS h, round(avg(snr), 1) AS a FROM spots GROUP BY 1"
        ),
        "h,a\n2023-11-14T22:00:00Z,-2.3\n"
    );
    assert_eq!(
        csv("SELECT max(band) AS b FROM spots WHERE callsign LIKE 'G%'"),
        "b\n107\n"
    );
    assert_eq!(
        csv("SELECT upper(substr(mode, 1, 2)) AS m, md5(version) AS v FROM spots LIMIT 1")
            .lines()
            .count(),
        2
    );
    assert!(csv("SHOW TABLES").contains("wspr,bronze"));
    assert_eq!(csv("SHOW COLUMNS FROM spots").lines().count(), 18);
    assert_eq!(
        csv("SET dyno.coded_aggregate = false; SELECT 1 AS one; SELECT 2 AS two"),
        "one\n1\ntwo\n2\n"
    );
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let table = three_spots();
    let error = refusal(table.path(), "SELECT callsign,\n  cuont FROM spots");
    assert!(error.contains("cuont"), "{error}");
    assert!(
        error.contains("line 2, column 3:\n    cuont FROM spots\n    ^"),
        "{error}"
    );
    let error = refusal(table.path(), "SELECT FORM spots WHERE");
    assert!(error.contains("line 1, column"), "{error}");
    let error = refusal(table.path(), "SELECT * FROM stops");
    assert!(error.contains("stops"), "{error}");
    let error = refusal(table.path(), "SELECT 1; SELECT id FROM");
    assert!(error.contains("^"), "{error}");
}

#[test]
fn nothing_is_written() {
    let table = three_spots();
    for sql in [
        "DROP TABLE spots",
        "CREATE TABLE t AS SELECT * FROM spots",
        "CREATE VIEW v AS SELECT 1",
        "INSERT INTO spots SELECT * FROM spots",
        "DELETE FROM spots",
        "UPDATE spots SET snr = 0",
        "COPY spots TO '/tmp/spots.csv'",
    ] {
        let error = refusal(table.path(), sql);
        assert!(error.contains("only read here"), "{sql}: {error}");
    }
}

#[test]
fn tables_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("gone");
    assert!(refusal(&missing, "SELECT 1").contains("gone"));
    assert!(refusal(folder.path(), "SELECT 1").contains(folder.path().to_str().unwrap()));

    let table = three_spots();
    let manifest = table.path().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"version\": 1", "\"version\": 99")).unwrap();
    let error = refusal(table.path(), "SELECT 1");
    assert!(error.contains("version 99"), "{error}");

    std::fs::write(&manifest, text.replace("\"rows\": 1", "\"rows\": 7")).unwrap();
    let error = refusal(table.path(), "SELECT 1");
    assert!(error.contains("has 1 rows, the manifest says 7"), "{error}");

    std::fs::write(&manifest, &text).unwrap();
    let data = table.path().join("data");
    let file = std::fs::read_dir(data)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(&file, b"PAR1 but torn").unwrap();
    let error = refusal(table.path(), "SELECT 1");
    assert!(error.contains(file.to_str().unwrap()), "{error}");
}

#[test]
fn bench_prints_its_windows() {
    let table = three_spots();
    let path = table.path().to_str().unwrap();
    let output = dyno_sql(&["bench", path, TOP, "--threads", "2", "--repeats", "3"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["rows_scanned"], 3);
    assert_eq!(json["windows"].as_array().unwrap().len(), 3);
    assert_eq!(json["row_count"], 2);
    assert_eq!(json["rows"][0]["callsign"], "K1ABC");
    assert_eq!(json["operator"], "CodedAggregateExec");
}

#[test]
fn misuse() {
    assert_eq!(dyno_sql(&[]).status.code(), Some(2));
    assert_eq!(
        dyno_sql(&["query", "dir", "SELECT 1", "--memory", "much"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        dyno_sql(&["query", "dir", "SELECT 1", "--threads", "0"])
            .status
            .code(),
        Some(2)
    );
    let version = dyno_sql(&["version"]);
    assert!(String::from_utf8_lossy(&version.stdout).contains("DataFusion 55"));
}

#[test]
fn strangers_have_bounds() {
    let table = three_spots();
    let table = table.path();
    let all = "SELECT id FROM spots ORDER BY id";
    let csv = ["--format", "csv"];
    let bounded = |more: &[&str], sql: &str| query(table, sql, &[&csv[..], more].concat());
    let output = bounded(&["--max-rows", "2", "--select-only"], all);
    assert!(output.status.success());
    assert_eq!(output.stdout, b"id\n1\n2\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("more rows than 2"));
    let output = bounded(&["--max-rows", "3"], all);
    assert_eq!(output.stdout, b"id\n1\n2\n3\n");
    assert!(output.stderr.is_empty());
    let output = bounded(
        &["--select-only"],
        "SET datafusion.execution.batch_size = 1",
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("only a SELECT"));
    // More pairs than can be looked at in a second.
    let endless = "WITH n AS (SELECT unnest(generate_series(1, 1000000)) AS n)
        SELECT count(*) FROM n a, n b WHERE a.n * b.n % 7 = 3";
    let output = bounded(&["--time-limit", "1"], endless);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no answer within 1 s"));
}

/// A wrong name and a wrong argument are the user's mistakes, and not bugs of a library to be
/// reported to its makers.
#[test]
fn mistakes_in_a_statement_are_said_in_its_own_words() {
    let table = three_spots();
    let said = refusal(table.path(), "SELECT * FROM spts");
    let expected = "there is no table spts; there are: spots, wspr, wspr.bronze";
    assert!(said.contains(expected), "{said}");
    let said = refusal(table.path(), "SELECT avg(callsign) FROM spots");
    assert!(said.contains("avg does not take (text)"), "{said}");
    assert!(!said.contains("github.com"), "{said}");
}
