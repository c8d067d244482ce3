//! Reads Parquet files by the reader of the `parquet` crate.

use std::fs::File;
use std::path::Path;

use dyno_tpch::Table;
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArrayType, FixedLenByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::{ReadOptions, Sum, factor, is_bare, key_columns, text_value, weight};
use crate::spots::each;

/// The rows and sum of a share of the file's row groups.
pub(super) fn sum(path: &Path, options: ReadOptions) -> Result<Sum, String> {
    read(path, options).map_err(|e| e.to_string())
}

fn read(path: &Path, options: ReadOptions) -> Result<Sum, ParquetError> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let mut sum = Sum::default();
    for index in options.share.range_of(reader.num_row_groups() as u64) {
        let group = reader.get_row_group(index as usize)?;
        let weights = weights(group.as_ref(), options.table)?;
        sum.rows += weights.len() as u64;
        for (number, column) in options.table.columns().iter().enumerate() {
            let mut rest = weights.iter();
            let mut total = 0u64;
            let mut add = |value: u64| {
                if let Some(weight) = rest.next() {
                    total = total.wrapping_add(value.wrapping_mul(*weight));
                }
            };
            let bare = is_bare(column, options.texts);
            each_value(group.as_ref(), column.name, bare, &mut add)?;
            sum.total = sum.total.wrapping_add(total.wrapping_mul(factor(number)));
        }
    }
    Ok(sum)
}

fn weights(group: &dyn RowGroupReader, table: Table) -> Result<Vec<u64>, ParquetError> {
    let (first, second) = key_columns(table);
    let values = |column: usize| {
        let mut values = Vec::new();
        let name = table.columns()[column].name;
        each_value(group, name, false, &mut |value| values.push(value)).map(|()| values)
    };
    let mut firsts = values(first)?;
    let seconds = second.map(values).transpose()?;
    for (row, key) in firsts.iter_mut().enumerate() {
        let second = seconds.as_ref().and_then(|values| values.get(row));
        *key = weight(table, *key, second.copied().unwrap_or(0));
    }
    Ok(firsts)
}

fn each_value(
    group: &dyn RowGroupReader,
    name: &str,
    bare: bool,
    add: &mut dyn FnMut(u64),
) -> Result<(), ParquetError> {
    let schema = group.metadata().schema_descr();
    let column = (0..schema.num_columns())
        .find(|&index| schema.column(index).name() == name)
        .ok_or_else(|| ParquetError::General(format!("there is no column {name}")))?;
    match group.get_column_reader(column)? {
        ColumnReader::Int32ColumnReader(reader) => each::<Int32Type>(reader, |values| {
            values
                .iter()
                .for_each(|&value| add(i64::from(value) as u64));
        }),
        ColumnReader::Int64ColumnReader(reader) => each::<Int64Type>(reader, |values| {
            values.iter().for_each(|&value| add(value as u64));
        }),
        ColumnReader::ByteArrayColumnReader(reader) => each::<ByteArrayType>(reader, |values| {
            values
                .iter()
                .for_each(|value| add(text_value(value.data(), bare)));
        }),
        // Some writers store decimals as big-endian two's complement.
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            each::<FixedLenByteArrayType>(reader, |values| {
                values
                    .iter()
                    .for_each(|value| add(hundredths(value.data())));
            })
        }
        _ => Err(ParquetError::General(format!(
            "column {name} has a type that no column of TPC-H has"
        ))),
    }
}

fn hundredths(bytes: &[u8]) -> u64 {
    let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
        u64::MAX
    } else {
        0
    };
    bytes
        .iter()
        .fold(sign, |value, &byte| value << 8 | u64::from(byte))
}
