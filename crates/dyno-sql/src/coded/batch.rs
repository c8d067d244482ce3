//! The answer as a record batch.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, StringViewBuilder, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{DataFusionError, Result};
use dyno_grouping::{Answer, Domain, Group};

use super::expression::{ints, is_text, text};
use super::percentile::percentile;
use super::spec::{Measure, Spec};
use super::top::kept;

/// One row for each group, the columns in the order of the plan that was replaced.
pub(super) fn batch(spec: &Spec, answer: &Answer) -> Result<RecordBatch> {
    let rows = Rows::new(spec, answer);
    let mut columns = Vec::with_capacity(spec.schema.fields().len());
    let (keys, measures) = spec.schema.fields().split_at(spec.keys());
    for (index, field) in keys.iter().enumerate() {
        let domain = answer.domain(index).ok_or_else(|| missing(field))?;
        columns.push(rows.keys(index, domain, field)?);
    }
    for (measure, field) in spec.measures.iter().zip(measures) {
        columns.push(rows.results(*measure, field)?);
    }
    // Without the count, a batch that has no columns would have no rows either.
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let schema = Arc::clone(&spec.schema);
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

fn missing(field: &Field) -> DataFusionError {
    DataFusionError::Internal(format!("{} has no values", field.name()))
}

/// The rows of the answer: each one group, or several that differ in the spread column alone.
struct Rows<'a> {
    answer: &'a Answer,
    /// The groups row by row.
    groups: Vec<usize>,
    /// Where each row's groups end; none when each row has one.
    ends: Option<Vec<usize>>,
}

impl<'a> Rows<'a> {
    fn new(spec: &Spec, answer: &'a Answer) -> Self {
        if spec.spread {
            return Self::together(spec.keys(), answer);
        }
        let kept = spec.top.and_then(|top| kept(spec, top, answer));
        Self {
            answer,
            groups: kept.unwrap_or_else(|| (0..answer.len()).collect()),
            ends: None,
        }
    }

    /// Puts groups together whose first `keys` keys are the same.
    fn together(keys: usize, answer: &'a Answer) -> Self {
        let mut rows: HashMap<Vec<u32>, usize> = HashMap::new();
        let row_of: Vec<usize> = answer
            .groups()
            .map(|group| {
                let next = rows.len();
                *rows
                    .entry(group.keys().take(keys).collect())
                    .or_insert(next)
            })
            .collect();
        // The sort is stable and by row, so the groups of a row lie side by side and `ends` can say
        // where each row's run stops.
        let mut groups: Vec<usize> = (0..answer.len()).collect();
        groups.sort_by_key(|group| row_of[*group]);
        let mut ends = vec![0; rows.len()];
        for (at, group) in groups.iter().enumerate() {
            ends[row_of[*group]] = at + 1;
        }
        Self {
            answer,
            groups,
            ends: Some(ends),
        }
    }

    fn len(&self) -> usize {
        self.ends.as_ref().map_or(self.groups.len(), Vec::len)
    }

    /// The groups of each row.
    fn iter(&self) -> impl Iterator<Item = impl Iterator<Item = Group<'a>> + Clone> {
        (0..self.len()).map(|row| {
            let range = match &self.ends {
                Some(ends) => row.checked_sub(1).map_or(0, |before| ends[before])..ends[row],
                None => row..row + 1,
            };
            self.groups[range]
                .iter()
                .filter_map(|group| self.answer.group(*group))
        })
    }

    fn keys(&self, index: usize, domain: &Domain, field: &Field) -> Result<ArrayRef> {
        let numbers = self.iter().map(|mut groups| {
            let first = groups.next().and_then(|group| group.keys().nth(index));
            first.unwrap_or_default()
        });
        if !is_text(field.data_type()) {
            return ints(numbers.map(|number| domain.int(number)), field.data_type());
        }
        let mut builder = StringViewBuilder::with_capacity(self.len());
        for number in numbers {
            match domain.bytes(number) {
                Some(bytes) => builder.append_value(text(field.name(), bytes)?),
                None => builder.append_null(),
            }
        }
        Ok(cast(&builder.finish(), field.data_type())?)
    }

    fn results(&self, measure: Measure, field: &Field) -> Result<ArrayRef> {
        let count = |groups: &mut dyn Iterator<Item = Group<'a>>| -> u64 {
            groups.map(|group| group.count()).sum()
        };
        let rows = self.iter();
        match measure {
            Measure::Count => {
                integers(rows.map(|mut groups| i128::from(count(&mut groups))), field)
            }
            Measure::Sum(column) => integers(
                rows.map(|groups| groups.map(|group| group.sum(column)).sum()),
                field,
            ),
            Measure::Min(column) => integers(
                rows.map(|groups| groups.map(|group| group.least(column)).min().unwrap_or(0)),
                field,
            ),
            Measure::Max(column) => integers(
                rows.map(|groups| groups.map(|group| group.most(column)).max().unwrap_or(0)),
                field,
            ),
            Measure::Avg(column) => {
                let means: Float64Array = rows
                    .map(|groups| {
                        let sum: i128 = groups.clone().map(|group| group.sum(column)).sum();
                        let mut groups = groups;
                        Some(sum as f64 / count(&mut groups) as f64)
                    })
                    .collect();
                Ok(Arc::new(means))
            }
            Measure::Percentile(share) => self.percentiles(share, field),
        }
    }

    fn percentiles(&self, share: f64, field: &Field) -> Result<ArrayRef> {
        let spread = self.answer.keys().checked_sub(1);
        let (spread, domain) = spread
            .and_then(|spread| Some((spread, self.answer.domain(spread)?)))
            .ok_or_else(|| missing(field))?;
        let results: Float64Array = self
            .iter()
            .map(|groups| {
                let mut values: Vec<(i64, u64)> = groups
                    .filter_map(|group| {
                        let number = group.keys().nth(spread)?;
                        Some((domain.int(number)?, group.count()))
                    })
                    .collect();
                values.sort_unstable();
                percentile(&values, share)
            })
            .collect();
        Ok(Arc::new(results))
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
