//! Turns the result of a flow into metrics.

use std::collections::BTreeMap;

use dyno_measure::Latencies;

use super::backlog::Backlog;
use super::flow::Flow;
use super::params::Measured;

/// Quantiles under their names in records.
pub(super) const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// All metrics. Rates are per second, latencies in milliseconds, processor time in microseconds per
/// message.
pub(super) fn from_flow(flow: &Flow, measured: &Measured) -> BTreeMap<String, f64> {
    let Measured { flowed, used, .. } = measured;
    let start_ns = flowed.writes.started_ns;
    let seconds = |until_ns: u64| (until_ns.saturating_sub(start_ns)) as f64 / 1e9;
    let write_s = seconds(flowed.writes.ended_ns);
    let read_s = seconds(flowed.read.last_ns);
    let messages = flowed.messages as f64;
    let figures = [
        ("throughput", messages / write_s),
        ("reads", flowed.read.messages as f64 / read_s),
        ("io-rate", messages * flow.payload as f64 / write_s),
        ("backlog-max", flowed.backlog.max() as f64),
        ("empty-polls", flowed.read.empty as f64),
        ("client-cpu-us", used.client_cpu_s * 1e6 / messages),
        ("wal-bytes", used.wal_bytes / messages),
    ];
    let mut metrics: BTreeMap<String, f64> = figures
        .map(|(name, value)| (name.to_string(), value))
        .into();
    let of_server = [
        ("server-cpu-us", used.server_cpu_s),
        ("cpu-us", used.cpu_s()),
    ];
    for (name, seconds) in of_server {
        if let Some(seconds) = seconds {
            metrics.insert(name.to_string(), seconds * 1e6 / messages);
        }
    }
    quantiles(&mut metrics, "write", &flowed.writes.recorder.corrected);
    quantiles(&mut metrics, "read", &flowed.read.polls);
    if let Some(rate) = flow.rate {
        end_to_end(&mut metrics, &flowed.backlog, rate, &flowed.read.end_to_end);
    }
    metrics
}

/// The end-to-end quantiles. A growing backlog has none, because a message's wait would depend only
/// on how long the run was.
fn end_to_end(
    metrics: &mut BTreeMap<String, f64>,
    backlog: &Backlog,
    rate: f64,
    waits: &Latencies,
) {
    if backlog.grew(rate).is_none() {
        quantiles(metrics, "end-to-end", waits);
    }
}

/// Adds the quantiles of `of` in milliseconds.
fn quantiles(metrics: &mut BTreeMap<String, f64>, name: &str, of: &Latencies) {
    for (label, p) in QUANTILES {
        if let Some(ns) = of.quantile_ns(p) {
            metrics.insert(format!("{name}-{label}"), ns as f64 / 1e6);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_growing_backlog_no_latency_from_end_to_end_is_told() {
        let mut waits = Latencies::new().expect("a histogram");
        waits.record(5_000_000).expect("a latency");
        for (step, told) in [(0, 4), (100, 0)] {
            let mut metrics = BTreeMap::new();
            let backlog = Backlog::seen(|look| look * step);
            end_to_end(&mut metrics, &backlog, 1_000.0, &waits);
            assert_eq!(metrics.len(), told, "{metrics:?}");
        }
    }
}
