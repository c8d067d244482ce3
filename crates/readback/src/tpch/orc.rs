//! Reads ORC files by the library `orc-rust`.

use std::fs::File;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int32Type, Int64Type};
use orc_rust::ArrowReaderBuilder;

use super::{ReadOptions, Sum, factor, is_bare, key_columns, text_value, weight};

/// The rows and sum of the stripes that begin in a share of the file's bytes.
pub(super) fn sum(path: &Path, options: ReadOptions) -> Result<Sum, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    let bytes = options.share.range_of(length);
    let reader = ArrowReaderBuilder::try_new(file)
        .map_err(|e| e.to_string())?
        .with_file_byte_range(bytes.start as usize..bytes.end as usize)
        .build();
    let mut sum = Sum::default();
    for batch in reader {
        add_batch(&mut sum, &batch.map_err(|e| e.to_string())?, options)?;
    }
    Ok(sum)
}

fn add_batch(sum: &mut Sum, batch: &RecordBatch, options: ReadOptions) -> Result<(), String> {
    let columns = options.table.columns();
    let array = |number: usize| {
        let name = columns[number].name;
        let found = batch.column_by_name(name);
        let array = found.ok_or_else(|| format!("there is no column {name}"))?;
        match array.null_count() {
            0 => Ok(array),
            nulls => Err(format!("column {name} holds NULL {nulls} times")),
        }
    };
    let (first, second) = key_columns(options.table);
    let mut weights = values(array(first)?, false)?;
    let seconds = second.map(|s| values(array(s)?, false)).transpose()?;
    for (row, key) in weights.iter_mut().enumerate() {
        let second = seconds.as_ref().map_or(0, |values| values[row]);
        *key = weight(options.table, *key, second);
    }
    for (number, column) in columns.iter().enumerate() {
        let values = values(array(number)?, is_bare(column, options.texts))?;
        let products = values.iter().zip(&weights);
        let total = products.fold(0u64, |total, (value, weight)| {
            total.wrapping_add(value.wrapping_mul(*weight))
        });
        sum.total = sum.total.wrapping_add(total.wrapping_mul(factor(number)));
    }
    sum.rows += batch.num_rows() as u64;
    Ok(())
}

fn values(array: &ArrayRef, bare: bool) -> Result<Vec<u64>, String> {
    let narrow = |values: &[i32]| values.iter().map(|&v| i64::from(v) as u64).collect();
    Ok(match array.data_type() {
        DataType::Int32 => narrow(array.as_primitive::<Int32Type>().values()),
        DataType::Date32 => narrow(array.as_primitive::<Date32Type>().values()),
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>().values();
            values.iter().map(|&value| value as u64).collect()
        }
        DataType::Decimal128(_, 2) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            values.iter().map(|&value| value as u64).collect()
        }
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            (0..texts.len())
                .map(|row| text_value(texts.value(row).as_bytes(), bare))
                .collect()
        }
        other => return Err(format!("no column of TPC-H is a {other}")),
    })
}
