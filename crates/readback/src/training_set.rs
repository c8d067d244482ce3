//! Computes the checksum of a training set (docs/formats/checksums.md). It depends on the order of
//! the rows, because a set is in the order of time.

use std::fs::File;
use std::path::Path;

use parquet::basic::Type;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::FloatType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::spots::{column_sum, each};
use crate::{Error, Sum};

/// What the checksum has of a column.
#[derive(Clone, Copy)]
enum ColumnTotal {
    /// The sum of value times weight, modulo 2^64.
    Integers(u64),
    /// The sum of the values.
    Floats(f64),
}

/// Reads a training set in a Parquet file, and returns its count and checksum. Columns that may
/// have gaps, those of the solar indices, are not part of it.
///
/// # Errors
/// When the file cannot be read or has a column of another kind than a training set.
pub fn training_set(path: &Path) -> Result<Sum, Error> {
    let read = |path: &Path| -> Result<Sum, ParquetError> {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        let (mut count, mut columns) = (0, Vec::new());
        for index in 0..reader.num_row_groups() {
            add(
                reader.get_row_group(index)?.as_ref(),
                &mut count,
                &mut columns,
            )?;
        }
        let parts: Vec<String> = columns.iter().map(|total| part(*total, count)).collect();
        Ok(Sum {
            count,
            checksum: parts.join(","),
        })
    };
    read(path).map_err(|error| Error::File {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// Adds a row group whose first row is number `count` of the file.
fn add(
    group: &dyn RowGroupReader,
    count: &mut u64,
    columns: &mut Vec<ColumnTotal>,
) -> Result<(), ParquetError> {
    let rows = group.metadata().num_rows().max(0) as u64;
    let weights: Vec<u64> = (*count..*count + rows)
        .map(|row| 1 + row % 65_521)
        .collect();
    *count += rows;
    let schema = group.metadata().schema_descr();
    let required = (0..schema.num_columns()).filter(|&at| schema.column(at).max_def_level() == 0);
    for (place, at) in required.enumerate() {
        let column = schema.column(at);
        let of_group = match column.physical_type() {
            Type::FLOAT => ColumnTotal::Floats(float_sum(group, at)?),
            _ => ColumnTotal::Integers(column_sum(group, column.name(), &weights)?),
        };
        match (columns.get_mut(place), of_group) {
            (Some(ColumnTotal::Integers(sum)), ColumnTotal::Integers(more)) => {
                *sum = sum.wrapping_add(more)
            }
            (Some(ColumnTotal::Floats(sum)), ColumnTotal::Floats(more)) => *sum += more,
            _ => columns.push(of_group),
        }
    }
    Ok(())
}

fn float_sum(group: &dyn RowGroupReader, column: usize) -> Result<f64, ParquetError> {
    let reader = get_typed_column_reader::<FloatType>(group.get_column_reader(column)?);
    let mut sum = 0.0;
    each::<FloatType>(reader, |values| {
        sum += values.iter().map(|value| f64::from(*value)).sum::<f64>();
    })?;
    Ok(sum)
}

/// Three decimals of a mean: programs that round a value of a row differently have the same.
fn part(total: ColumnTotal, count: u64) -> String {
    match total {
        ColumnTotal::Integers(sum) => format!("{sum:016x}"),
        ColumnTotal::Floats(sum) => format!("{:.3}", sum / count as f64),
    }
}
