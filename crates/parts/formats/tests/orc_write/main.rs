//! ORC files, read back by pyarrow, pyorc and orc-rust.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod errors;
mod readers;
mod rust_reader;
mod table;

use std::path::Path;
use std::sync::Arc;

use dyno_formats::columns::{Field, Kind, Words};
use dyno_formats::orc_write::{Compression, FileWriter, Layout, Options, StripeWriter};
use readers::{ask, interpreter};
use table::{Column, Owned, table};

/// Writes all rows, `stripe_rows` to a stripe and `batch_rows` to a batch.
fn write(
    columns: &[Column],
    rows: usize,
    options: Options,
    stripe_rows: usize,
    batch_rows: usize,
) -> Vec<u8> {
    let fields: Vec<Field> = columns.iter().map(|column| column.field).collect();
    let layout = Arc::new(Layout::new(&fields, options).unwrap());
    let mut file = FileWriter::new(Vec::new(), layout.clone()).unwrap();
    let mut stripe = StripeWriter::new(&layout).unwrap();
    let mut at = 0;
    while at < rows {
        let left = stripe_rows - stripe.rows();
        let end = rows.min(at + batch_rows.min(left));
        let loose: Vec<_> = columns
            .iter()
            .map(|column| column.loosen(at..end))
            .collect();
        let batch = columns.iter().zip(&loose);
        let batch: Vec<_> = batch
            .map(|(column, loose)| column.batch(at..end, loose))
            .collect();
        stripe.append(&batch).unwrap();
        at = end;
        if stripe.rows() == stripe_rows {
            assert!(stripe.encoded_bytes() > 0);
            file.append(stripe.finish().unwrap()).unwrap();
        }
    }
    file.append(stripe.finish().unwrap()).unwrap();
    let (bytes, summary) = file.finish().unwrap();
    assert_eq!(summary.rows, rows as u64);
    assert_eq!(summary.bytes, bytes.len() as u64);
    assert_eq!(summary.stripes, rows.div_ceil(stripe_rows));
    bytes
}

const READ: &str = r"
import sys, pyarrow as pa, pyarrow.orc as orc
file = orc.ORCFile(sys.argv[1])
table = file.read()
assert file.nrows == table.num_rows
print('rows', file.nrows, 'stripes', file.nstripes, file.compression, file.row_index_stride)
for field in file.schema:
    print('column', field.name, field.type)
    column = table[field.name]
    if field.type == pa.date32():
        column = column.cast(pa.int32())
    print('\n'.join(str(value) for value in column.to_pylist()))
";

fn expected(columns: &[Column], rows: usize) -> Vec<Vec<String>> {
    let print = |column: &Column| (0..rows).map(|row| column.print(row)).collect();
    columns.iter().map(print).collect()
}

/// Compares what pyarrow reads with the rows that were written.
fn check(python: &Path, columns: &[Column], rows: usize, bytes: &[u8], head: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.orc");
    std::fs::write(&path, bytes).unwrap();
    let read = ask(python, READ, &path);
    let (first, rest) = read.split_once('\n').unwrap();
    assert_eq!(first, head);
    let mut parts = rest.split("column ").skip(1);
    for (column, expected) in columns.iter().zip(expected(columns, rows)) {
        let part = parts.next().unwrap();
        let (name, values) = part.split_once('\n').unwrap();
        let values: Vec<&str> = values.strip_suffix('\n').unwrap().split('\n').collect();
        assert!(name.starts_with(column.field.name), "{name}");
        for (row, expected) in expected.iter().enumerate() {
            assert_eq!(values[row], expected, "{name} row {row} of {head}");
        }
    }
}

#[test]
fn pyarrow_reads_every_column_at_odd_sizes() {
    let Some(python) = interpreter("pyarrow", "ORC read back by pyarrow") else {
        return;
    };
    for (rows, stripe_rows, batch_rows) in [
        (0, 1, 1),
        (1, 10, 10),
        (511, 1000, 100),
        (10_000, 10_000, 8192),
        (10_001, 20_000, 10_000),
        (45_678, 23_456, 7777),
    ] {
        let columns = table(rows);
        let bytes = write(&columns, rows, Options::default(), stripe_rows, batch_rows);
        let stripes = rows.div_ceil(stripe_rows);
        let head = format!("rows {rows} stripes {stripes} UNCOMPRESSED 10000");
        check(&python, &columns, rows, &bytes, &head);
    }
}

#[test]
fn pyarrow_reads_every_codec() {
    let Some(python) = interpreter("pyarrow", "ORC codecs read back by pyarrow") else {
        return;
    };
    let rows = 12_345;
    let columns = table(rows);
    for (name, chunk_bytes) in [
        ("zlib", 4096),
        ("zlib:1", 1 << 18),
        ("snappy", 10_000),
        ("snappy", 1 << 18),
        ("lz4", 1 << 16),
        ("zstd:9", 20_000),
    ] {
        let compression: Compression = name.parse().unwrap();
        let options = Options {
            compression,
            chunk_bytes,
            ..Options::default()
        };
        let bytes = write(&columns, rows, options, 11_000, 8192);
        let codec = compression.name().to_uppercase();
        let head = format!("rows {rows} stripes 2 {codec} 10000");
        check(&python, &columns, rows, &bytes, &head);
    }
}

#[test]
fn pyorc_seeks_and_filters_by_the_row_index() {
    let Some(python) = interpreter("pyorc", "ORC row index used by pyorc") else {
        return;
    };
    let rows = 24_000;
    let columns = table(rows);
    let folder = tempfile::tempdir().unwrap();
    for (name, chunk_bytes) in [("none", 1 << 18), ("snappy", 5000)] {
        let options = Options {
            compression: name.parse().unwrap(),
            chunk_bytes,
            ..Options::default()
        };
        let path = folder.path().join("rows.orc");
        std::fs::write(&path, write(&columns, rows, options, 22_000, 8192)).unwrap();
        let answer = ask(&python, include_str!("index.py"), &path);
        assert_eq!(answer.trim(), "checked True skipped True", "{name}");
    }
}

#[test]
fn padded_chars_have_their_length() {
    let Some(python) = interpreter("pyarrow", "padded char(n) read back by pyarrow") else {
        return;
    };
    let rows = 1200;
    let word = |i: usize| ["é", "AIR", "", "REG AIR"][i % 4].to_owned();
    let padded = |i| format!("{:<10}", word(i));
    let kind = Kind::Char(10);
    let texts = |make: &dyn Fn(usize) -> String| (0..rows).map(make).collect::<Vec<_>>();
    let words = |make: &dyn Fn(usize) -> String| Words::new((0..4).map(make));
    let codes: Vec<u8> = (0..rows).map(|row| row as u8 % 4).collect();
    let columns = |make: &dyn Fn(usize) -> String| {
        vec![
            Column::new("coded", kind, Owned::Coded(codes.clone(), words(make))),
            Column::new("text", kind, Owned::Text(texts(make))),
            Column::new("slices", kind, Owned::Slices(texts(make))),
        ]
    };
    let options = Options {
        pad_chars: true,
        ..Options::default()
    };
    let bytes = write(&columns(&word), rows, options, rows, 500);
    let head = format!("rows {rows} stripes 1 UNCOMPRESSED 10000");
    check(&python, &columns(&padded), rows, &bytes, &head);
}

#[test]
fn batches_do_not_change_the_bytes() {
    let rows = 25_000;
    let columns = table(rows);
    for name in ["none", "snappy"] {
        let options = || Options {
            compression: name.parse().unwrap(),
            ..Options::default()
        };
        let whole = write(&columns, rows, options(), 20_000, rows);
        assert!(
            whole == write(&columns, rows, options(), 20_000, 777),
            "{name}"
        );
    }
}
