//! Computes the order-independent checksum of the rows of a feed (docs/formats/checksums.md) by a
//! Parquet reader that is not ours.

use std::fs::File;
use std::path::Path;

use dyno_ingest::table::Snapshot;
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::spots::{each_batch, is_signed, string_value, widened};
use crate::{Error, Sum};

/// How many rows have a value in a column, and the sum of the values modulo 2^64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ColumnSum {
    present: u64,
    sum: u64,
}

impl ColumnSum {
    /// Adds the values of some rows. Rows without a value are passed over.
    fn add(&mut self, values: impl Iterator<Item = u64>) -> Result<(), ParquetError> {
        for value in values {
            self.present += 1;
            self.sum = self.sum.wrapping_add(value);
        }
        Ok(())
    }
}

/// Reads every row of `feed` in the newest committed state of a table, and returns their count and
/// checksum.
///
/// # Errors
/// When the directory is not a table, has no archive of the feed, or a file cannot be read.
pub fn feed(table: &Path, feed: &str) -> Result<Sum, Error> {
    let snapshot = Snapshot::open(table)?;
    let mut count = 0;
    let mut columns: Vec<ColumnSum> = Vec::new();
    let mut files = snapshot.files_of(feed).peekable();
    if files.peek().is_none() {
        return Err(Error::NoFeed {
            table: table.to_owned(),
            feed: feed.to_owned(),
        });
    }
    for (path, _) in files {
        count += add_file(&path, &mut columns).map_err(|e| Error::File {
            path: path.clone(),
            reason: e.to_string(),
        })?;
    }
    let parts = columns
        .iter()
        .map(|of| format!("{}:{:016x}", of.present, of.sum));
    Ok(Sum {
        count,
        checksum: parts.collect::<Vec<_>>().join("-"),
    })
}

/// Adds the rows of a file to the sums of its columns, and returns how many they are.
fn add_file(path: &Path, columns: &mut Vec<ColumnSum>) -> Result<u64, ParquetError> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let mut rows = 0;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        rows += group.metadata().num_rows().max(0) as u64;
        columns.resize(group.num_columns(), ColumnSum::default());
        for (at, column) in columns.iter_mut().enumerate() {
            add_column(group.as_ref(), at, column)?;
        }
    }
    Ok(rows)
}

fn add_column(
    group: &dyn RowGroupReader,
    at: usize,
    column: &mut ColumnSum,
) -> Result<(), ParquetError> {
    let schema = group.metadata().schema_descr();
    let kind = schema.column(at);
    let signed = is_signed(&kind);
    match group.get_column_reader(at)? {
        ColumnReader::Int32ColumnReader(reader) => each_batch::<Int32Type>(reader, |_, values| {
            column.add(values.iter().map(|&value| widened(value, signed)))
        }),
        ColumnReader::Int64ColumnReader(reader) => each_batch::<Int64Type>(reader, |_, values| {
            column.add(values.iter().map(|&value| value as u64))
        }),
        ColumnReader::ByteArrayColumnReader(reader) => {
            each_batch::<ByteArrayType>(reader, |_, values| {
                column.add(values.iter().map(|text| string_value(text.data())))
            })
        }
        _ => Err(ParquetError::General(format!(
            "column {} has a type that no feed has",
            kind.name()
        ))),
    }
}
