//! Keys that whole pages have in common, such as the day of pages that were filled within it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cmp::not_distinct;
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::common::Result;
use dyno_grouping::Settled;

use super::expression::Computed;
use super::pages::Pages;
use crate::file::TableFile;

/// A key that never falls while its column rises: what it is of the least and of the greatest value
/// of a page, it is of all values between them.
#[derive(Debug, Clone)]
pub(super) struct Rising {
    /// The name of the column that the key is computed from.
    pub(super) column: String,
    pub(super) key: Arc<Computed>,
}

impl Rising {
    /// Where in a row group all rows have one key, as far as the page index tells.
    pub(super) fn settled(
        &self,
        file: &TableFile,
        row_group: usize,
        schema: &SchemaRef,
    ) -> Vec<Settled> {
        let pages = Pages::from_file(file, row_group, &self.column);
        // An index that cannot be read costs time and never a row.
        let settled = pages.and_then(|pages| self.settled_pages(&pages, schema).ok());
        settled.unwrap_or_default()
    }

    fn settled_pages(&self, pages: &Pages<'_>, schema: &SchemaRef) -> Result<Vec<Settled>> {
        let least = pages.least(schema, &self.column)?;
        let most = pages.most(schema, &self.column)?;
        let values = cast(&least, &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>();
        let known = |at: usize| !values.is_null(at) && !most.is_null(at);
        let keys = self.key.evaluate(least)?;
        let one = not_distinct(&keys, &self.key.evaluate(Arc::clone(&most))?)?;
        let others = keys.len().saturating_sub(1);
        // `as_before[i]` compares page i + 1 with page i, so that neighbouring pages with one key
        // become one range.
        let as_before = not_distinct(
            &keys.slice(keys.len() - others, others),
            &keys.slice(0, others),
        )?;
        let mut settled: Vec<Settled> = Vec::new();
        for (at, rows) in pages.rows.iter().enumerate() {
            if at >= keys.len() || !known(at) || !one.value(at) {
                continue;
            }
            match settled.last_mut() {
                Some(last) if last.rows.end == rows.start && as_before.value(at - 1) => {
                    last.rows.end = rows.end;
                }
                _ => settled.push(Settled {
                    rows: rows.clone(),
                    value: values.value(at),
                }),
            }
        }
        Ok(settled)
    }
}
