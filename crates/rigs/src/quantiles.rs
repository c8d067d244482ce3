//! The quantiles of latencies that every workload reports, under the same names.

use std::collections::BTreeMap;

use dyno_measure::Latencies;

/// Quantiles under their names in records.
pub(crate) const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
];

/// The fewest latencies that have a p99.9. Of fewer it would be the slowest answer under the name
/// of a percentile.
const P999_MIN: u64 = 1_000;

/// Adds the quantiles of `latencies` as `NAME-p50` and so on, in seconds divided by `unit_s`.
pub(crate) fn insert(
    metrics: &mut BTreeMap<String, f64>,
    name: &str,
    latencies: &Latencies,
    unit_s: f64,
) {
    for (label, p) in QUANTILES {
        if p > 0.99 && latencies.count() < P999_MIN {
            continue;
        }
        if let Some(ns) = latencies.quantile_ns(p) {
            metrics.insert(format!("{name}-{label}"), ns as f64 / 1e9 / unit_s);
        }
    }
}

/// The same quantiles of values that are sorted already, as `latency-p50` and so on.
pub(crate) fn of_sorted<T: Copy + Into<f64>>(sorted: &[T]) -> Vec<(String, f64)> {
    let found = QUANTILES.into_iter().filter_map(|(label, p)| {
        let at = (sorted.len() as f64 * p) as usize;
        let value: f64 = (*sorted.get(at)?).into();
        Some((format!("latency-{label}"), value))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_a_few_is_not_called_a_percentile() {
        let metrics_for = |count: u64| {
            let mut latencies = Latencies::new().expect("a histogram");
            for at in 1..=count {
                latencies.record(at * 1_000_000).expect("a latency");
            }
            let mut metrics = BTreeMap::new();
            insert(&mut metrics, "write", &latencies, 1e-3);
            metrics
        };
        let hundred = metrics_for(100);
        assert!(hundred.contains_key("write-p99") && !hundred.contains_key("write-p999"));
        assert!(metrics_for(1_000).contains_key("write-p999"));
        assert!((hundred["write-p90"] - 90.0).abs() < 0.1, "{hundred:?}");
        assert!(metrics_for(0).is_empty());
    }

    #[test]
    fn quantiles_of_sorted_values_are_among_them() {
        let values: Vec<f32> = (0..1000).map(|n| n as f32).collect();
        let found: BTreeMap<String, f64> = of_sorted(&values).into_iter().collect();
        assert_eq!(found["latency-p50"], 500.0);
        assert_eq!(found["latency-p999"], 999.0);
        assert!(of_sorted::<f32>(&[]).is_empty());
    }
}
