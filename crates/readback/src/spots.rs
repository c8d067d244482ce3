//! Computes the order-independent checksum of a spots table (docs/formats/checksums.md) by a
//! Parquet reader that is not ours, so that a load is checked by code that it does not share.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use dyno_ingest::contract::COLUMNS;
use dyno_ingest::table::Snapshot;
use md5::{Digest, Md5};
use parquet::basic::{LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use crate::{Error, Sum};

/// How many values are read in one call.
const BATCH: usize = 8192;

/// Reads every row of the newest committed state of a table, and returns its count and checksum.
///
/// # Errors
/// When the directory is not a table, or a file cannot be read or lacks a column.
pub fn spots(table: &Path) -> Result<Sum, Error> {
    let snapshot = Snapshot::open(table)?;
    let mut sums = Sums::default();
    for (path, _) in snapshot.files() {
        sums.add_file(&path).map_err(|e| Error::File {
            path: path.clone(),
            reason: e.to_string(),
        })?;
    }
    let parts: Vec<String> = sums
        .columns
        .iter()
        .map(|sum| format!("{sum:016x}"))
        .collect();
    Ok(Sum {
        count: sums.rows,
        checksum: parts.join("-"),
    })
}

#[derive(Default)]
struct Sums {
    rows: u64,
    columns: [u64; COLUMNS.len()],
}

impl Sums {
    fn add_file(&mut self, path: &Path) -> Result<(), ParquetError> {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        for index in 0..reader.num_row_groups() {
            let group = reader.get_row_group(index)?;
            let weights = weights(group.as_ref())?;
            self.rows += weights.len() as u64;
            for (column, name) in COLUMNS.iter().enumerate() {
                let sum = column_sum(group.as_ref(), name, &weights)?;
                self.columns[column] = self.columns[column].wrapping_add(sum);
            }
        }
        Ok(())
    }
}

/// The weight of each row, 1 + id mod 65521.
fn weights(group: &dyn RowGroupReader) -> Result<Vec<u64>, ParquetError> {
    let mut weights = Vec::with_capacity(group.metadata().num_rows().max(0) as usize);
    let reader = group.get_column_reader(position(group, "id")?)?;
    each::<Int64Type>(get_typed_column_reader(reader), |ids| {
        weights.extend(ids.iter().map(|&id| 1 + id as u64 % 65_521));
    })?;
    Ok(weights)
}

fn position(group: &dyn RowGroupReader, name: &str) -> Result<usize, ParquetError> {
    let schema = group.metadata().schema_descr();
    (0..schema.num_columns())
        .find(|&i| schema.column(i).name() == name)
        .ok_or_else(|| ParquetError::General(format!("there is no column {name}")))
}

/// The sum of value times weight over the rows of a group, modulo 2^64.
pub(crate) fn column_sum(
    group: &dyn RowGroupReader,
    name: &str,
    weights: &[u64],
) -> Result<u64, ParquetError> {
    let column = position(group, name)?;
    let kind = group.metadata().schema_descr().column(column);
    let per_second = match kind.logical_type_ref() {
        Some(LogicalType::Timestamp(stamp)) => match stamp.unit {
            TimeUnit::MILLIS => 1_000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        },
        _ => 1,
    };
    let signed = is_signed(&kind);
    let mut sum = 0u64;
    let mut rest = weights.iter();
    let mut add = |value: u64| {
        if let Some(weight) = rest.next() {
            sum = sum.wrapping_add(value.wrapping_mul(*weight));
        }
    };
    match group.get_column_reader(column)? {
        ColumnReader::Int32ColumnReader(reader) => each::<Int32Type>(reader, |values| {
            for &value in values {
                add(widened(value, signed));
            }
        })?,
        ColumnReader::Int64ColumnReader(reader) => each::<Int64Type>(reader, |values| {
            for &value in values {
                // The contract counts times in seconds, rounded down before 1970 too.
                add(if per_second == 1 {
                    value
                } else {
                    value.div_euclid(per_second)
                } as u64);
            }
        })?,
        ColumnReader::ByteArrayColumnReader(reader) => {
            let mut strings = StringValues::default();
            each::<ByteArrayType>(reader, |values| {
                for value in values {
                    add(strings.value(value));
                }
            })?;
        }
        _ => {
            return Err(ParquetError::General(format!(
                "column {name} has a type that no column of the contract has"
            )));
        }
    }
    Ok(sum)
}

/// The values of strings that were seen, by the addresses of their bytes. All rows with the same
/// dictionary code share the bytes of the dictionary page. The map keeps these alive, so that no
/// other string can get the same address.
#[derive(Default)]
struct StringValues(HashMap<(usize, usize), (u64, ByteArray)>);

impl StringValues {
    fn value(&mut self, text: &ByteArray) -> u64 {
        let bytes = text.data();
        let place = (bytes.as_ptr() as usize, bytes.len());
        self.0
            .entry(place)
            .or_insert_with(|| (string_value(bytes), text.clone()))
            .0
    }
}

/// Whether the integers of a column have a sign.
pub(crate) fn is_signed(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => integer.is_signed,
        _ => true,
    }
}

/// An integer of 32 bits in 64, in two's complement.
pub(crate) fn widened(value: i32, signed: bool) -> u64 {
    if signed {
        value as u64
    } else {
        u64::from(value as u32)
    }
}

/// The first eight hex digits of the MD5, as a number.
pub(crate) fn string_value(bytes: &[u8]) -> u64 {
    let digest = Md5::digest(bytes);
    u64::from(u32::from_be_bytes([
        digest[0], digest[1], digest[2], digest[3],
    ]))
}

/// Calls `take` with all values of a column, batch by batch.
///
/// # Errors
/// A value is NULL, or the column cannot be read.
pub(crate) fn each<T: DataType>(
    reader: ColumnReaderImpl<T>,
    mut take: impl FnMut(&[T::T]),
) -> Result<(), ParquetError> {
    each_batch(reader, |rows, values| {
        if values.len() != rows {
            return Err(ParquetError::General(
                "it holds NULL, which the contract forbids".into(),
            ));
        }
        take(values);
        Ok(())
    })
}

/// Calls `take` with the number of rows of each batch of a column, and the values of those rows
/// that have one.
///
/// # Errors
/// Those of `take`, or the column cannot be read.
pub(crate) fn each_batch<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    mut take: impl FnMut(usize, &[T::T]) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let (mut values, mut definitions) = (Vec::new(), Vec::new());
    loop {
        values.clear();
        definitions.clear();
        let (rows, _, _) = reader.read_records(BATCH, Some(&mut definitions), None, &mut values)?;
        if rows == 0 {
            return Ok(());
        }
        take(rows, &values)?;
    }
}
