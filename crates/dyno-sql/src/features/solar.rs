//! Indices of the sun and of the earth's magnetic field by day, from the table of the feed `solar`.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use crate::statement;

/// Columns of a training set, and the index of the feed that each is the mean of.
pub(super) const INDICES: [(&str, &str); 4] = [
    ("solar_flux_sfu", "f107_observed"),
    ("sunspots", "sunspots"),
    ("kp", "kp"),
    ("ap", "ap_daily"),
];

/// The time of a row in milliseconds: a table with Iceberg metadata has microseconds.
const MOMENT: &str = "arrow_cast(timestamp, 'Timestamp(Millisecond, Some(\"UTC\"))')";

/// Days of a table that are read. A table since 1818 has 76,000; a table with more than this is not
/// one of days, and its values shall not fill the memory.
const DAYS_MAX: usize = 1_000_000;

/// The mean of each index on each day, over all of the day's values and sources.
#[derive(Debug, Default)]
pub(super) struct DailyIndices {
    /// By days since 1970.
    days: HashMap<i64, [Option<f32>; INDICES.len()]>,
}

impl DailyIndices {
    /// Reads the table `solar` of a session.
    ///
    /// # Errors
    /// There is no such table, it cannot be read, or it has more than a million days.
    pub(super) async fn read(context: &SessionContext) -> Result<DailyIndices> {
        let mut daily = DailyIndices::default();
        for (at, (_, index)) in INDICES.iter().enumerate() {
            // A day ends at midnight UTC. Times before 1970 are negative, so the division must
            // round down and not towards zero.
            let sql = format!(
                "SELECT CAST(floor(CAST(CAST({MOMENT} AS BIGINT) AS DOUBLE) / 86400000) AS BIGINT) \
                 AS day, avg(CAST(value AS DOUBLE)) AS value FROM solar \
                 WHERE \"index\" = '{index}' AND value IS NOT NULL GROUP BY 1"
            );
            for parsed in statement::parse(&sql)? {
                let frame = statement::plan(context, parsed, &sql).await?;
                let mut batches = frame.execute_stream().await?;
                while let Some(batch) = batches.next().await {
                    let batch = batch?;
                    let days = batch.column(0).as_primitive::<Int64Type>();
                    let values = batch.column(1).as_primitive::<Float64Type>();
                    for (day, value) in days.values().iter().zip(values.values()) {
                        daily.days.entry(*day).or_default()[at] = Some(*value as f32);
                    }
                    ensure!(
                        daily.days.len() <= DAYS_MAX,
                        "the table solar has more than {DAYS_MAX} days"
                    );
                }
            }
        }
        Ok(daily)
    }

    /// The values of [`INDICES`] on a day since 1970, `None` for those that the table does not
    /// have.
    pub(super) fn of_day(&self, day: i64) -> [Option<f32>; INDICES.len()] {
        self.days.get(&day).copied().unwrap_or_default()
    }
}
