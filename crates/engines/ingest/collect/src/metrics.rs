//! The metrics of a collector.

use dyno_serve::{Counter, Gauge, Registry, ServeError};

use crate::sequence::Account;

/// Counters and gauges of a collector, for Prometheus.
#[derive(Debug, Clone)]
pub struct Metrics {
    pub(crate) messages: Counter,
    pub(crate) bytes: Counter,
    pub(crate) connections: Counter,
    pub(crate) disconnections: Counter,
    pub(crate) gaps: Counter,
    pub(crate) missing: Gauge,
    pub(crate) late: Counter,
    pub(crate) connected: Gauge,
    pub(crate) last_message_s: Gauge,
}

impl Metrics {
    /// Enters them into a registry.
    ///
    /// # Errors
    /// [`ServeError::Metric`] when the registry has such names already.
    pub fn new(registry: &Registry) -> Result<Metrics, ServeError> {
        let counter = |name, help| registry.counter(name, help, &[]);
        let gauge = |name, help| registry.gauge(name, help, &[]);
        Ok(Metrics {
            messages: counter("dyno_collect_messages_total", "Messages written.")?,
            bytes: counter(
                "dyno_collect_message_bytes_total",
                "Bytes of their payloads.",
            )?,
            connections: counter("dyno_collect_connections_total", "Connections made.")?,
            disconnections: counter(
                "dyno_collect_disconnections_total",
                "Connections lost or not made.",
            )?,
            gaps: counter(
                "dyno_collect_sequence_gaps_total",
                "Places where numbers are left out.",
            )?,
            missing: gauge(
                "dyno_collect_sequence_missing",
                "Numbers left out, less those that came late.",
            )?,
            late: counter(
                "dyno_collect_sequence_late_total",
                "Messages behind one with a higher number.",
            )?,
            connected: gauge("dyno_collect_connected", "Whether there is a connection.")?,
            last_message_s: gauge(
                "dyno_collect_last_message_timestamp_seconds",
                "When the last message came.",
            )?,
        })
    }

    /// Adds the difference between two states of an account.
    pub(crate) fn account(&self, before: &Account, now: &Account) {
        self.gaps.add(now.gaps - before.gaps);
        self.late.add(now.late - before.late);
        let missing = |account: &Account| i64::try_from(account.missing).unwrap_or(i64::MAX);
        self.missing
            .add(missing(now).saturating_sub(missing(before)));
    }
}
