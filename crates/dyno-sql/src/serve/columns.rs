//! Integers of Arrow as integers of PostgreSQL, which has neither bytes nor unsigned ones.
//!
//! Each is sent as the next wider type that has all its values. `arrow-pg` announces bytes as
//! `smallint` but sends one byte of them in the binary form, which a driver reads as another
//! number; and it announces 64 unsigned bits as `numeric`, which many drivers have no type for.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::DataFusionError;

use super::refusal::Refusal;

/// The type in which values of `kind` are sent.
pub fn wide_type(kind: &DataType) -> &DataType {
    match kind {
        DataType::Int8 | DataType::UInt8 => &DataType::Int16,
        DataType::UInt16 => &DataType::Int32,
        // Numbers of spots and Hz have 63 bits at most; a sum beyond that is an error and not
        // another number.
        DataType::UInt32 | DataType::UInt64 => &DataType::Int64,
        other => other,
    }
}

/// The columns as they are sent.
pub fn wide_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let kind = wide_type(field.data_type()).clone();
        field.as_ref().clone().with_data_type(kind)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A batch with the columns of `schema`, which is [`wide_schema`] of its own.
///
/// # Errors
/// A number has no place in the type in which it is sent.
pub fn wide_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Refusal> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let failed = |error| Refusal::from(DataFusionError::from(error));
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns
        .map(|(column, field)| match field.data_type() {
            kind if kind == column.data_type() => Ok(Arc::clone(column)),
            kind => cast_with_options(column, kind, &options),
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(failed)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray, Int8Array, UInt64Array};
    use datafusion::arrow::datatypes::{Field, Int16Type};

    use super::*;

    #[test]
    fn narrow_and_unsigned_numbers_keep_their_values_or_are_refused() {
        let narrow = Schema::new(vec![
            Field::new("snr", DataType::Int8, false),
            Field::new("id", DataType::UInt64, false),
        ]);
        let wide = wide_schema(&narrow);
        let batch = |id: u64| {
            let snr = Arc::new(Int8Array::from(vec![-10]));
            let id = Arc::new(UInt64Array::from(vec![id]));
            RecordBatch::try_new(Arc::new(narrow.clone()), vec![snr, id]).unwrap()
        };
        let sent = wide_batch(&batch(7), &wide).unwrap();
        assert_eq!(sent.column(0).as_primitive::<Int16Type>().value(0), -10);
        assert!(wide_batch(&batch(u64::MAX), &wide).is_err());
    }
}
