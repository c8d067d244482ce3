//! A table's files through arrow-rs, pyarrow and DuckDB.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Decimal128Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMillisecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use dyno_ingest::table::Snapshot;
use dyno_ingest_feeds::{Feed, Kind};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::agree::Row;

/// The file of each input, in their order.
pub fn files(snapshot: &Snapshot, feed: &Feed, inputs: &[PathBuf]) -> Vec<PathBuf> {
    let path = |input: &PathBuf| {
        let archive = &snapshot.manifest().archives[&feed.identity(None, input)];
        snapshot.table().join(&archive.files[0].path)
    };
    inputs.iter().map(path).collect()
}

/// The text of an archive, by readers that are not the loader's.
pub fn text_of(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    let mut file = File::open(path).unwrap();
    match path.extension().and_then(|e| e.to_str()) {
        Some("gz") => {
            flate2::read::MultiGzDecoder::new(file)
                .read_to_end(&mut text)
                .unwrap();
        }
        Some("zip") => {
            let unzipped = Command::new("unzip").arg("-p").arg(path).output().unwrap();
            assert!(unzipped.status.success());
            text = unzipped.stdout;
        }
        _ => {
            file.read_to_end(&mut text).unwrap();
        }
    }
    text
}

pub fn row_groups(path: &Path) -> usize {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.metadata().num_row_groups()
}

/// The rows of a file as text.
pub fn rows(path: &Path, feed: &Feed) -> Vec<Row> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let schema = batch.schema();
        let mut table = vec![Vec::new(); batch.num_rows()];
        for ((stored, field), column) in schema
            .fields()
            .iter()
            .zip(feed.rows.as_ref().unwrap().fields)
            .zip(batch.columns())
        {
            assert_eq!(
                (stored.name().as_str(), stored.is_nullable()),
                (field.name, field.nullable)
            );
            assert_eq!(
                *stored.data_type(),
                arrow_type(field.kind),
                "{}",
                field.name
            );
            let texts = cells(column);
            for (row, text) in table.iter_mut().zip(texts) {
                row.push(text);
            }
        }
        rows.extend(table);
    }
    rows
}

fn arrow_type(kind: Kind) -> DataType {
    match kind {
        Kind::Integer {
            bits: 16,
            signed: true,
        } => DataType::Int16,
        Kind::Integer {
            bits: 32,
            signed: true,
        } => DataType::Int32,
        Kind::Integer {
            bits: 64,
            signed: true,
        } => DataType::Int64,
        Kind::Integer {
            bits: 8,
            signed: false,
        } => DataType::UInt8,
        Kind::Integer {
            bits: 16,
            signed: false,
        } => DataType::UInt16,
        Kind::Integer {
            bits: 32,
            signed: false,
        } => DataType::UInt32,
        Kind::Integer {
            bits: 64,
            signed: false,
        } => DataType::UInt64,
        Kind::Moment => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        Kind::Thousandths => DataType::Decimal128(15, 3),
        Kind::Word | Kind::Text => DataType::Utf8,
        other => panic!("no feed has {other:?}"),
    }
}

fn cells(column: &dyn Array) -> Vec<Option<String>> {
    macro_rules! of {
        ($kind:ty) => {
            column
                .as_primitive::<$kind>()
                .iter()
                .map(|v| v.map(|v| v.to_string()))
                .collect()
        };
    }
    match column.data_type() {
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        DataType::Timestamp(..) => of!(TimestampMillisecondType),
        DataType::Decimal128(..) => of!(Decimal128Type),
        DataType::Utf8 => column
            .as_string::<i32>()
            .iter()
            .map(|v| v.map(String::from))
            .collect(),
        other => panic!("unexpected {other}"),
    }
}

/// pyarrow and DuckDB read every file of the table: as many rows as the manifest says and the same
/// count, sum and extent of values in each column.
pub fn others_read(snapshot: &Snapshot) {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let python = data
        .or(home)
        .map(|data| data.join("dynolab/peers/duckdb/venv/bin/python"));
    let Some(python) = python.filter(|python| python.exists()) else {
        println!(
            "skipped: DuckDB reads the feeds' tables: it is not installed (dyno peers install duckdb)"
        );
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stored/duckdb_reads.py");
    for (path, file) in snapshot.files() {
        let output = Command::new(&python)
            .arg(script)
            .arg(&path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", path.display());
        let found = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            found.trim(),
            checksum(&path, file.rows),
            "{}",
            path.display()
        );
    }
}

/// Rows, then for each column how many values it has and their bytes as text together.
fn checksum(path: &Path, rows: u64) -> String {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let mut sums: Vec<(String, u64, u64)> = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        for (at, column) in batch.columns().iter().enumerate() {
            if sums.len() == at {
                sums.push((batch.schema().field(at).name().clone(), 0, 0));
            }
            for text in cells(column).into_iter().flatten() {
                sums[at].1 += 1;
                sums[at].2 += text.len() as u64;
            }
        }
    }
    let columns = sums
        .iter()
        .map(|(name, values, bytes)| format!("{name} {values} {bytes}"));
    let lines: Vec<String> = std::iter::once(rows.to_string()).chain(columns).collect();
    assert!(fs::metadata(path).unwrap().len() > 0);
    lines.join("\n")
}
