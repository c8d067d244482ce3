//! Passes Arrow arrays as columns to a writer of ours, which `baseline` does for ORC.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Date32Type, Decimal128Type, Int32Type, Int64Type};
use dyno_formats::columns::Values;
use dyno_tpch::{Batch, TextPool};
use dyno_tpch_arrow::record_batch;
use dyno_tpch_files::format::{Columns, Refused, Source};

/// Makes columns from Arrow arrays.
pub(crate) struct Arrays;

impl Source for Arrays {
    type Columns = Arrow;

    fn columns(&self) -> Arrow {
        Arrow::default()
    }
}

/// Buffers for values that Arrow has in wider or signed types.
#[derive(Default)]
pub(crate) struct Arrow {
    columns: Vec<Column>,
}

#[derive(Default)]
struct Column {
    integers: Vec<i64>,
    offsets: Vec<u32>,
}

impl Columns for Arrow {
    fn with_columns<R>(
        &mut self,
        batch: &Batch,
        pool: &TextPool,
        take: impl FnOnce(&[Values<'_>]) -> R,
    ) -> Result<R, Refused> {
        let arrays = record_batch(batch, pool);
        let arrays = arrays.map_err(|error| Refused::Reason(error.to_string()))?;
        self.columns
            .resize_with(arrays.num_columns(), Column::default);
        for (column, array) in self.columns.iter_mut().zip(arrays.columns()) {
            column.fill(array);
        }
        let columns: Vec<Values> = self
            .columns
            .iter()
            .zip(arrays.columns())
            .map(|(column, array)| column.values(array))
            .collect();
        Ok(take(&columns))
    }
}

impl Column {
    fn fill(&mut self, array: &ArrayRef) {
        self.integers.clear();
        self.offsets.clear();
        if let Some(decimals) = array.as_primitive_opt::<Decimal128Type>() {
            // The decimals have 15 digits, which fit into 64 bits.
            self.integers
                .extend(decimals.values().iter().map(|&value| value as i64));
        } else if let Some(text) = array.as_string_opt::<i32>() {
            self.offsets
                .extend(text.value_offsets().iter().map(|&offset| offset as u32));
        }
    }

    fn values<'a>(&'a self, array: &'a ArrayRef) -> Values<'a> {
        if let Some(keys) = array.as_primitive_opt::<Int64Type>() {
            Values::Int64(keys.values())
        } else if let Some(integers) = array.as_primitive_opt::<Int32Type>() {
            Values::Int32(integers.values())
        } else if let Some(days) = array.as_primitive_opt::<Date32Type>() {
            Values::Int32(days.values())
        } else if let Some(text) = array.as_string_opt::<i32>() {
            Values::Text {
                offsets: &self.offsets,
                bytes: text.value_data(),
            }
        } else {
            Values::Int64(&self.integers)
        }
    }
}
