//! The answer as a record batch.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, StringViewBuilder, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{DataFusionError, Result};

use super::groups::{ColumnGroups, Groups};
use super::spec::{Measure, Spec};
use super::workers::Answer;

/// One row for each group, the columns in the order of the plan that was replaced.
pub(super) fn batch(spec: &Spec, answer: &Answer) -> Result<RecordBatch> {
    let rows = answer.names.len();
    let fields = spec.schema.fields();
    let mut columns = Vec::with_capacity(fields.len());
    let mut fields = fields.iter();
    if let Some(field) = fields.next() {
        columns.push(keys(answer, field)?);
    }
    for (measure, field) in spec.measures.iter().zip(fields) {
        columns.push(results(*measure, &answer.groups, field)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(&spec.schema),
        columns,
        &options,
    )?)
}

fn keys(answer: &Answer, field: &Field) -> Result<ArrayRef> {
    let mut builder = StringViewBuilder::with_capacity(answer.names.len());
    for number in 0..answer.names.len() {
        let bytes = answer.names.get(number);
        let name = std::str::from_utf8(bytes).map_err(|error| {
            DataFusionError::Execution(format!(
                "{} holds {:?}, which is not UTF-8: {error}",
                field.name(),
                String::from_utf8_lossy(bytes)
            ))
        })?;
        builder.append_value(name);
    }
    Ok(cast(&builder.finish(), field.data_type())?)
}

fn results(measure: Measure, groups: &Groups, field: &Field) -> Result<ArrayRef> {
    let column = |index: usize| -> Result<&ColumnGroups> {
        groups.columns.get(index).ok_or_else(|| {
            DataFusionError::Internal(format!("{} has no value column", field.name()))
        })
    };
    match measure {
        Measure::Count => integers(groups.counts.iter().map(|count| i128::from(*count)), field),
        Measure::Sum(index) => integers(column(index)?.sums.iter().copied(), field),
        Measure::Min(index) => integers(column(index)?.least.iter().copied(), field),
        Measure::Max(index) => integers(column(index)?.most.iter().copied(), field),
        Measure::Avg(index) => {
            let sums = column(index)?.sums.iter().zip(&groups.counts);
            let means: Float64Array = sums
                .map(|(sum, count)| Some(*sum as f64 / *count as f64))
                .collect();
            Ok(Arc::new(means))
        }
    }
}

/// Integers in the field's type; a sum wraps in 64 bits as it does in the general plan.
fn integers(values: impl Iterator<Item = i128>, field: &Field) -> Result<ArrayRef> {
    let array: ArrayRef = match field.data_type() {
        DataType::Float64 => Arc::new(values.map(|v| Some(v as f64)).collect::<Float64Array>()),
        DataType::UInt64 => Arc::new(values.map(|v| Some(v as u64)).collect::<UInt64Array>()),
        _ => Arc::new(values.map(|v| Some(v as i64)).collect::<Int64Array>()),
    };
    Ok(cast(&array, field.data_type())?)
}
