//! What pyarrow and DuckDB read: values, statistics, and rows under a filter that prunes.

use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_formats::parquet_write::{ColumnOptions, Compression, Encoding, Options, PageVersion};

use super::tables::{Column, Value, table, write};

/// The Python of a reader that `dyno peers install` put there; says so where there is none.
fn python(peer: &str) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let data = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or(home)?;
    let python = data.join(format!("dynolab/peers/{peer}/venv/bin/python"));
    if python.exists() {
        return Some(python);
    }
    println!("skipped: {peer} reads our Parquet: it is not installed (dyno peers install {peer})");
    None
}

fn ask(python: &Path, arguments: &[&str]) -> Vec<String> {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/parquet_tables/readers.py"
    );
    let output = Command::new(python)
        .arg(script)
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(String::from).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::Integer(value) => value.to_string(),
        Value::Text(value) => value.clone(),
    }
}

fn checksums(columns: &[Column]) -> Vec<String> {
    let line = |column: &Column| {
        let mut checksum = crc32fast::Hasher::new();
        for row in 0..column.rows() {
            checksum.update(text(&column.value(row)).as_bytes());
            checksum.update(b"\n");
        }
        let checksum = checksum.finalize();
        format!("{} {} {checksum}", column.field.name, column.rows())
    };
    columns.iter().map(line).collect()
}

/// One file for each codec and page version, and one for each encoding of all columns.
fn variants(columns: &[Column]) -> Vec<Options> {
    let codecs = ["none", "snappy", "zstd:3", "lz4_raw"];
    let mut variants = Vec::new();
    for page_version in [PageVersion::V1, PageVersion::V2] {
        for codec in codecs {
            variants.push(Options {
                compression: codec.parse().unwrap(),
                page_version,
                ..Options::default()
            });
        }
        for encoding in [
            Encoding::Plain,
            Encoding::Dictionary,
            Encoding::Delta,
            Encoding::Prefix,
        ] {
            let mut options = Options {
                page_version,
                ..Options::default()
            };
            for column in columns {
                let is_text = matches!(column.value(0), Value::Text(_));
                let asked = ColumnOptions {
                    compression: Some(Compression::Snappy),
                    encoding: match encoding {
                        Encoding::Prefix if !is_text => Encoding::Auto,
                        _ => encoding,
                    },
                };
                options.columns.push((column.field.name.into(), asked));
            }
            variants.push(options);
        }
    }
    variants
}

#[test]
fn other_readers_see_the_same_values() {
    let columns = table(6000);
    let expected = checksums(&columns);
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (i, options) in variants(&columns).into_iter().enumerate() {
        let path = folder.path().join(format!("{i}.parquet"));
        std::fs::write(&path, write(&columns, options, 900, 4)).unwrap();
        paths.push(path.to_str().unwrap().to_owned());
    }
    for peer in ["pyarrow", "duckdb"] {
        let Some(python) = python(peer) else { continue };
        let mut arguments = vec![peer];
        arguments.extend(paths.iter().map(String::as_str));
        let seen = ask(&python, &arguments);
        assert_eq!(seen.len(), paths.len() * expected.len());
        for (path, seen) in paths.iter().zip(seen.chunks(expected.len())) {
            assert_eq!(seen, expected, "{peer} reads {path}");
        }
    }
}

#[test]
fn filters_leave_the_right_rows_where_bounds_prune() {
    let Some(python) = python("duckdb") else {
        return;
    };
    let columns = table(30_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pruned.parquet");
    std::fs::write(&path, write(&columns, Options::default(), 1000, 5)).unwrap();
    let mut arguments = vec!["duckdb-count".to_owned(), path.to_str().unwrap().to_owned()];
    let mut expected = Vec::new();
    for column in columns.iter().filter(|column| column.field.name != "day") {
        let values: Vec<Value> = (0..column.rows()).map(|row| column.value(row)).collect();
        let mut probes = vec![values.iter().min(), values.iter().max()];
        probes.extend([0, 5001, 29_999].map(|row| Some(&values[row])));
        for probe in probes.into_iter().flatten() {
            let name = column.field.name;
            let is_money = ["price", "tax", "cost"].contains(&name);
            let literal = match probe {
                Value::Integer(value) if is_money => format!("{value} * 0.01::decimal(3,2)"),
                Value::Integer(value) => value.to_string(),
                Value::Text(value) => format!("'{value}'"),
            };
            for (sign, holds) in [
                ("=", (|a, b| a == b) as fn(&Value, &Value) -> bool),
                (">=", |a, b| a >= b),
                ("<", |a, b| a < b),
            ] {
                arguments.push(format!("{name} {sign} {literal}"));
                let rows = values.iter().filter(|value| holds(value, probe)).count();
                expected.push(rows.to_string());
            }
        }
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let counted = ask(&python, &arguments);
    for ((condition, counted), expected) in arguments[2..].iter().zip(&counted).zip(&expected) {
        assert_eq!(counted, expected, "{condition}");
    }
    assert_eq!(counted.len(), expected.len());
}

#[test]
fn pyarrow_shows_statistics_and_order() {
    let Some(python) = python("pyarrow") else {
        return;
    };
    let columns = table(3000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shown.parquet");
    let options = Options {
        sorted_by: vec!["key".into(), "line".into()],
        ..Options::default()
    };
    std::fs::write(&path, write(&columns, options, 1000, 3)).unwrap();
    let shown = ask(&python, &["pyarrow-stats", path.to_str().unwrap()]);
    assert_eq!(shown[0], "sorted by 0 1");
    for (column, shown) in columns.iter().zip(&shown[1..]) {
        let values: Vec<Value> = (0..column.rows()).map(|row| column.value(row)).collect();
        let ends = [values.iter().min().unwrap(), values.iter().max().unwrap()].map(text);
        // Longer texts are cut, which another test checks.
        if ends.iter().all(|end| end.len() <= 64) {
            let expected = format!("{}|{}|{}|0", column.field.name, ends[0], ends[1]);
            assert_eq!(*shown, expected);
        }
    }
}
