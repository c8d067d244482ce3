//! The 22 queries give the same answers from every format, and those of an engine that is not ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::installed::installed;
use crate::tpch_tables::{tpch, write_csv, write_orc, write_parquet, write_tbl};
use dyno_tpch::Scale;
use dyno_tpch::queries::Query;

const SCALE: f64 = 0.01;

/// The rows of a query.
fn rows(directory: &Path, query: &Query) -> Vec<Vec<String>> {
    let number = query.number.to_string();
    let (out, _) = tpch("query", directory, &["--q", &number, "--format", "csv"]).unwrap();
    out.lines().skip(1).map(fields).collect()
}

/// The fields of a line of CSV, whose quotes are doubled within quotes.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

/// The results of DuckDB over the same Parquet files. Its averages are floats, of which four digits
/// after the point are as good as a decimal's.
fn duckdb(directory: &Path) -> Option<Vec<Vec<Vec<String>>>> {
    let Some(python) = installed("duckdb/venv/bin/python") else {
        println!("skipped: queries in DuckDB: it is not installed; scripts/test installs it");
        return None;
    };
    let scale = Scale::new(SCALE).unwrap();
    let queries: Vec<_> = Query::all().iter().map(|query| query.sql(&scale)).collect();
    let script = "
import json, sys, duckdb
directory, queries = json.load(sys.stdin)
db = duckdb.connect(config={'threads': 1})
for table in 'region nation part supplier partsupp customer orders lineitem'.split():
    db.execute(f\"CREATE VIEW {table} AS FROM '{directory}/{table}.parquet'\")
text = lambda v: '' if v is None else f'{v:.4f}' if isinstance(v, float) else str(v)
print(json.dumps([[[text(v) for v in row] for row in db.execute(q).fetchall()] for q in queries]))";
    let directory_text = directory.to_str().unwrap();
    let input = serde_json::to_vec(&(directory_text, queries)).unwrap();
    let input_path = directory.join("queries.json");
    fs::write(&input_path, input).unwrap();
    let output = Command::new(python)
        .args(["-c", script])
        .stdin(fs::File::open(input_path).unwrap())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn answers_are_those_of_every_format_and_of_duckdb() {
    let tbl = tempfile::tempdir().unwrap();
    write_tbl(tbl.path(), SCALE);
    let parquet = tempfile::tempdir().unwrap();
    write_parquet(tbl.path(), parquet.path());
    let csv = tempfile::tempdir().unwrap();
    write_csv(csv.path(), SCALE);
    let orc = tempfile::tempdir().unwrap();
    write_orc(orc.path(), SCALE);
    let theirs = duckdb(parquet.path());
    for (place, query) in Query::all().iter().enumerate() {
        let mut answer = query.answer();
        answer.rows = rows(parquet.path(), query);
        for other in [tbl.path(), csv.path(), orc.path()] {
            assert_eq!(
                answer.difference(&rows(other, query)),
                None,
                "{}",
                query.name()
            );
        }
        if let Some(theirs) = &theirs {
            let ours = std::mem::replace(&mut answer.rows, theirs[place].clone());
            assert_eq!(answer.difference(&ours), None, "{}", query.name());
        }
    }
}

#[test]
fn times_come_as_json() {
    let tbl = tempfile::tempdir().unwrap();
    write_tbl(tbl.path(), 0.001);
    let more = ["--q", "1,q06", "--repeats", "3", "--json", "--threads", "1"];
    let (out, good) = tpch("query", tbl.path(), &more).unwrap();
    assert!(good);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["scale_factor"], 0.001);
    assert_eq!(report["queries"][1]["query"], "q06");
    assert_eq!(report["queries"][1]["seconds"].as_array().unwrap().len(), 3);
    assert_eq!(report["queries"][0]["rows"], 4);
    assert!(report["queries"][0].get("correct").is_none());
}

#[test]
fn a_wrong_answer_is_shown_with_its_first_difference() {
    let tbl = tempfile::tempdir().unwrap();
    write_tbl(tbl.path(), 0.001);
    let (out, good) = tpch(
        "query",
        tbl.path(),
        &["--q", "6,13", "--check", "--sf", "1"],
    )
    .unwrap();
    assert!(!good);
    let differs: Vec<&str> = out
        .lines()
        .filter_map(|line| line.split("differs: ").nth(1))
        .collect();
    assert!(differs[0].starts_with("row 1: revenue is "), "{out}");
    assert!(differs[0].ends_with(", not 123141078.2283"), "{out}");
    assert!(differs[1].ends_with(" rows, not 42"), "{out}");
}

#[test]
fn what_cannot_be_done_is_refused() {
    let tbl = tempfile::tempdir().unwrap();
    write_tbl(tbl.path(), 0.001);
    let error = |more: &[&str]| tpch("query", tbl.path(), more).unwrap_err();
    let text = "--check: there is no published answer for scale factor 0.001, only for 1";
    assert_eq!(error(&["--check"]), text);
    let text = "--format csv and json print one result: name the query with --q";
    assert_eq!(error(&["--format", "csv"]), text);
    fs::remove_file(tbl.path().join("nation.tbl")).unwrap();
    assert!(error(&["--q", "5"]).starts_with("q05 needs the table nation, which "));
}
