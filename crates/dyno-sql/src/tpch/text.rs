//! Results as plain text, the form in which answers are compared and rows are shown.

use anyhow::Result;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

/// Every value of every row, NULL as `NULL`.
///
/// # Errors
/// A value that cannot be shown.
pub fn rows(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let values = columns
                .iter()
                .map(|column| column.value(row).try_to_string());
            rows.push(values.collect::<Result<Vec<_>, _>>()?);
        }
    }
    Ok(rows)
}
