//! Turns values into arrays, one by one. This is the plain way, against which faster ones are
//! measured.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Builder, Decimal128Builder, Int32Builder, Int64Builder, RecordBatch,
    StringBuilder,
};
use arrow::error::ArrowError;
use dyno_tpch::{Batch, Kind, TextPool, Values, tbl};

use crate::schema::{DECIMAL, schema};

/// Copies the rows of a batch into Arrow arrays that own their values.
///
/// # Errors
/// When Arrow refuses the arrays, which it does not do for those of TPC-H.
pub fn record_batch(batch: &Batch, pool: &TextPool) -> Result<RecordBatch, ArrowError> {
    let table = batch.table();
    let mut arrays = Vec::with_capacity(table.columns().len());
    for (at, column) in table.columns().iter().enumerate() {
        arrays.push(array(&batch.values(at), column.kind, pool)?);
    }
    RecordBatch::try_new(schema(table), arrays)
}

fn array(values: &Values<'_>, kind: Kind, pool: &TextPool) -> Result<ArrayRef, ArrowError> {
    Ok(match *values {
        Values::Key(keys) => {
            let mut array = Int64Builder::with_capacity(keys.len());
            for &key in keys {
                array.append_value(key);
            }
            Arc::new(array.finish())
        }
        Values::Integer(integers) => {
            let mut array = Int32Builder::with_capacity(integers.len());
            for &integer in integers {
                array.append_value(integer);
            }
            Arc::new(array.finish())
        }
        Values::Date(days) => {
            let mut array = Date32Builder::with_capacity(days.len());
            for &day in days {
                array.append_value(day);
            }
            Arc::new(array.finish())
        }
        Values::Decimal(hundredths) => decimals(hundredths.iter().copied())?,
        Values::CodedDecimal { codes, dictionary } => {
            decimals(codes.iter().map(|&code| dictionary[usize::from(code)]))?
        }
        Values::Coded { .. }
        | Values::Numbered { .. }
        | Values::Passages(_)
        | Values::Bytes { .. } => text(values, kind, pool)?,
    })
}

fn decimals(hundredths: impl ExactSizeIterator<Item = i64>) -> Result<ArrayRef, ArrowError> {
    let mut array = Decimal128Builder::with_capacity(hundredths.len());
    for value in hundredths {
        array.append_value(value.into());
    }
    let array = array
        .finish()
        .with_precision_and_scale(DECIMAL.0, DECIMAL.1)?;
    Ok(Arc::new(array))
}

fn text(values: &Values<'_>, kind: Kind, pool: &TextPool) -> Result<ArrayRef, ArrowError> {
    let mut array = StringBuilder::with_capacity(values.len(), values.len() * 16);
    let mut value = Vec::new();
    for row in 0..values.len() {
        value.clear();
        tbl::append_value(values, row, kind, pool, &mut value);
        let text = std::str::from_utf8(&value)
            .map_err(|e| ArrowError::InvalidArgumentError(format!("text of row {row}: {e}")))?;
        array.append_value(text);
    }
    Ok(Arc::new(array.finish()))
}
