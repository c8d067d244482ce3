//! ORC files, read back by pyarrow and pyorc.

mod readers;
mod table;

use std::path::Path;
use std::sync::Arc;

use dyno_formats::columns::Field;
use dyno_formats::orc_write::{Compression, FileWriter, Layout, Options, StripeWriter};
use readers::{ask, interpreter};
use table::{Column, table};

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
    let rows = 31_234;
    let columns = table(rows);
    for name in ["zlib", "zlib:1", "snappy", "lz4", "zstd", "zstd:9"] {
        for chunk_bytes in [4096, 256 * 1024] {
            let compression: Compression = name.parse().unwrap();
            let options = Options {
                compression,
                chunk_bytes,
                ..Options::default()
            };
            let bytes = write(&columns, rows, options, 25_000, 8192);
            let codec = compression.name().to_uppercase();
            let head = format!("rows {rows} stripes 2 {codec} 10000");
            check(&python, &columns, rows, &bytes, &head);
        }
    }
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
