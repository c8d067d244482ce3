//! Turns what several clients printed into the figures of one load.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::clients::{Consumed, Produced};
use super::servers::Used;

/// Names of the quantiles that a producer prints.
const LATENCIES: [&str; 4] = ["write-p50", "write-p95", "write-p99", "write-p999"];

/// The figures of producers. `sent` are all records, those before the timed ones too, because the
/// processor time is that of the whole load.
pub(super) fn of_producers(
    parts: &[Produced],
    payload: u64,
    used: &Used,
    sent: u64,
) -> BTreeMap<String, f64> {
    let spans = parts.iter().map(|part| (part.ended, part.seconds));
    let timed: u64 = parts.iter().map(|part| part.timed).sum();
    let mut metrics = rates(timed, payload, together_s(spans), used, sent);
    for (at, name) in LATENCIES.into_iter().enumerate() {
        // A client prints quantiles and not its histogram, so those of several cannot be merged.
        // The slowest client's stand for all.
        let worst = parts.iter().map(|part| part.latencies_ms[at]);
        metrics.insert(name.to_owned(), worst.fold(0.0, f64::max));
    }
    metrics
}

/// The figures of groups that read at once.
pub(super) fn of_groups(parts: &[Consumed], payload: u64, used: &Used) -> BTreeMap<String, f64> {
    let spans = parts.iter().map(|part| (part.ended, part.seconds));
    let records: u64 = parts.iter().map(|part| part.records).sum();
    let mut metrics = rates(records, payload, together_s(spans), used, records);
    let joining = parts.iter().map(|part| part.joining_s);
    metrics.insert("join-time".to_owned(), joining.fold(0.0, f64::max));
    metrics
}

fn rates(
    records: u64,
    payload: u64,
    seconds: f64,
    used: &Used,
    of_cpu: u64,
) -> BTreeMap<String, f64> {
    let rate = records as f64 / seconds;
    let each_us = |seconds: f64| seconds * 1e6 / of_cpu as f64;
    [
        ("throughput", rate),
        ("io-rate", rate * payload as f64),
        ("time", seconds),
        ("server-cpu-us", each_us(used.server_s)),
        ("client-cpu-us", each_us(used.clients_s)),
        ("cpu-us", each_us(used.server_s + used.clients_s)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Seconds from the start of the first client's load to the end of the last one's. Virtual machines
/// start at different speeds, so a sum of the clients' own rates would count time twice.
fn together_s(spans: impl Iterator<Item = (Instant, f64)>) -> f64 {
    let spans: Vec<(Instant, f64)> = spans.collect();
    let Some(last) = spans.iter().map(|(ended, _)| *ended).max() else {
        return 0.0;
    };
    let since_start = |(ended, seconds): &(Instant, f64)| {
        (Duration::from_secs_f64(*seconds) + (last - *ended)).as_secs_f64()
    };
    spans.iter().map(since_start).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_lasts_from_the_first_start_to_the_last_end() {
        let ended = Instant::now();
        let part = |after_s: u64, seconds: f64| Consumed {
            records: 50,
            seconds,
            joining_s: 0.25,
            ended: ended + Duration::from_secs(after_s),
        };
        let used = Used {
            server_s: 2e-4,
            clients_s: 1e-4,
        };
        // From 4 s before `ended` until 1 s after it.
        let metrics = of_groups(&[part(0, 4.0), part(1, 3.0)], 1_000, &used);
        assert_eq!(metrics["throughput"], 20.0);
        assert_eq!(metrics["io-rate"], 20_000.0);
        assert_eq!(metrics["join-time"], 0.25);
        assert!((metrics["server-cpu-us"] - 2.0).abs() < 1e-9, "{metrics:?}");
        assert!((metrics["cpu-us"] - 3.0).abs() < 1e-9, "{metrics:?}");
    }

    #[test]
    fn the_slowest_producers_quantiles_stand_for_all() {
        let ended = Instant::now();
        let part = |latencies_ms| Produced {
            sent: 15,
            timed: 10,
            seconds: 2.0,
            latencies_ms,
            ended,
        };
        let used = Used {
            server_s: 0.0,
            clients_s: 0.0,
        };
        let parts = [part([1.0, 9.0, 9.0, 9.0]), part([2.0, 3.0, 4.0, 20.0])];
        let metrics = of_producers(&parts, 1_024, &used, 30);
        assert_eq!((metrics["write-p50"], metrics["write-p95"]), (2.0, 9.0));
        assert_eq!((metrics["write-p999"], metrics["throughput"]), (20.0, 10.0));
    }
}
