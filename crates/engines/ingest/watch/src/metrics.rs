//! Counters and gauges of a watch.

use dyno_serve::{Counter, Gauge, Registry, ServeError};

/// The metrics of a watch, for Prometheus.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    pub(crate) loaded: Counter,
    pub(crate) replaced: Counter,
    pub(crate) there: Counter,
    pub(crate) bad: Counter,
    pub(crate) rows: Counter,
    pub(crate) bad_rows: Counter,
    pub(crate) bytes: Counter,
    pub(crate) errors: Counter,
    pub(crate) waiting: Gauge,
    pub(crate) records: Counter,
    pub(crate) lost: Counter,
    pub(crate) committed_at_s: Gauge,
}

/// Gauges of one partition, labelled with topic and number.
#[derive(Debug, Clone)]
pub(crate) struct PartitionMetrics {
    pub(crate) position: Gauge,
    pub(crate) lag: Gauge,
}

impl Metrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// [`ServeError::Metric`] when the registry has such names already.
    pub fn new(registry: &Registry) -> Result<Metrics, ServeError> {
        let counter = |name, help| registry.counter(name, help, &[]);
        let gauge = |name, help| registry.gauge(name, help, &[]);
        let files = |outcome| {
            let help = "Archives dealt with: files, or batches of records.";
            registry.counter("dyno_watch_archives_total", help, &[("outcome", outcome)])
        };
        Ok(Metrics {
            registry: registry.clone(),
            loaded: files("loaded")?,
            replaced: files("replaced")?,
            there: files("there")?,
            bad: files("bad")?,
            rows: counter("dyno_watch_rows_total", "Good rows committed.")?,
            bad_rows: counter("dyno_watch_bad_rows_total", "Rows put into quarantine.")?,
            bytes: counter(
                "dyno_watch_bytes_total",
                "Bytes of what was committed, as it was stored at its source.",
            )?,
            errors: counter(
                "dyno_watch_errors_total",
                "Attempts that failed and are made again.",
            )?,
            waiting: gauge(
                "dyno_watch_waiting_files",
                "Files in the folder that are not dealt with, complete or not.",
            )?,
            records: counter("dyno_watch_records_total", "Records of a log committed.")?,
            lost: counter(
                "dyno_watch_lost_records_total",
                "Records that were gone before they were loaded, and were left out.",
            )?,
            committed_at_s: gauge(
                "dyno_watch_last_commit_timestamp_seconds",
                "When something was last committed.",
            )?,
        })
    }

    pub(crate) fn partition(
        &self,
        topic: &str,
        partition: i32,
    ) -> Result<PartitionMetrics, ServeError> {
        let partition = partition.to_string();
        let labels = [("topic", topic), ("partition", partition.as_str())];
        let gauge = |name, help| self.registry.gauge(name, help, &labels);
        Ok(PartitionMetrics {
            position: gauge(
                "dyno_watch_position",
                "The offset behind the last record that is in the table.",
            )?,
            lag: gauge(
                "dyno_watch_lag_records",
                "Records in the log that are not in the table.",
            )?,
        })
    }
}
