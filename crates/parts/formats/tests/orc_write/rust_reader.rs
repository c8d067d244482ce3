//! orc-rust, a reader that shares nothing with the C++ library.

use std::fs::File;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int32Type, Int64Type};
use dyno_formats::orc_write::Options;
use orc_rust::ArrowReaderBuilder;
use orc_rust::row_selection::{RowSelection, RowSelector};

use crate::table::{Column, table};
use crate::{expected, write};

/// Prints the values of an array as the columns of the table print theirs.
fn print(values: &dyn Array) -> Vec<String> {
    let rows = 0..values.len();
    assert_eq!(values.null_count(), 0);
    match values.data_type() {
        DataType::Int32 => {
            let values = values.as_primitive::<Int32Type>();
            rows.map(|row| values.value(row).to_string()).collect()
        }
        DataType::Int64 => {
            let values = values.as_primitive::<Int64Type>();
            rows.map(|row| values.value(row).to_string()).collect()
        }
        DataType::Date32 => {
            let values = values.as_primitive::<Date32Type>();
            rows.map(|row| values.value(row).to_string()).collect()
        }
        DataType::Decimal128(_, _) => {
            let values = values.as_primitive::<Decimal128Type>();
            rows.map(|row| values.value_as_string(row)).collect()
        }
        DataType::Utf8 => {
            let values = values.as_string::<i32>();
            rows.map(|row| values.value(row).to_owned()).collect()
        }
        other => panic!("a column of {other}"),
    }
}

fn read(file: File, selection: Option<RowSelection>, columns: usize) -> Vec<Vec<String>> {
    let mut builder = ArrowReaderBuilder::try_new(file).unwrap();
    if let Some(selection) = selection {
        builder = builder.with_row_selection(selection);
    }
    let mut read = vec![Vec::new(); columns];
    for batch in builder.build() {
        for (column, values) in read.iter_mut().zip(batch.unwrap().columns()) {
            column.extend(print(values));
        }
    }
    read
}

#[test]
fn orc_rust_reads_every_column() {
    for (name, chunk_bytes, rows) in [
        ("none", 1 << 18, 1),
        ("none", 1 << 18, 21_234),
        ("zlib", 5000, 11_000),
        ("snappy", 1 << 18, 21_234),
        ("lz4", 1 << 16, 11_000),
        ("zstd", 20_000, 11_000),
    ] {
        let columns = table(rows);
        let options = Options {
            compression: name.parse().unwrap(),
            chunk_bytes,
            ..Options::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.orc");
        std::fs::write(&path, write(&columns, rows, options, 15_000, 8192)).unwrap();
        let all = read(File::open(&path).unwrap(), None, columns.len());
        let expected = expected(&columns, rows);
        compare(&columns, &all, &expected, name);
        if rows > 12_000 {
            let selection = RowSelection::from(vec![
                RowSelector::skip(9_990),
                RowSelector::select(40),
                RowSelector::skip(rows - 10_030),
            ]);
            let some = read(File::open(&path).unwrap(), Some(selection), columns.len());
            let expected: Vec<Vec<String>> = expected
                .iter()
                .map(|values| values[9_990..10_030].to_vec())
                .collect();
            compare(&columns, &some, &expected, "selected");
        }
    }
}

fn compare(columns: &[Column], read: &[Vec<String>], expected: &[Vec<String>], what: &str) {
    for (column, (read, expected)) in columns.iter().zip(read.iter().zip(expected)) {
        let name = column.field.name;
        assert_eq!(read.len(), expected.len(), "{name} of {what}");
        for (row, (read, expected)) in read.iter().zip(expected).enumerate() {
            assert_eq!(read, expected, "{name} row {row} of {what}");
        }
    }
}
