//! What the latency logs of a record say of a case.

use std::collections::BTreeMap;

use dyno_record::{Arm, CasePlan, LatencyLog, LatencySpan, Outcome, StoredRun};
use dyno_stats::median;

use super::samples::group;

/// The latencies of one system in one case, of all its invocations whose logs were kept.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptLatencies {
    /// The system that ran.
    pub system: String,
    /// Percentiles with their latencies in seconds, over the operations of all invocations, up to
    /// the last one with ten operations beyond it.
    pub curve: Vec<(f64, f64)>,
    /// The 99th percentile by time.
    pub by_time: Vec<LatencyAt>,
}

/// The 99th percentile of one stretch of time, over invocations; all numbers are seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyAt {
    /// From the start of the load to the middle of the stretch.
    pub at_s: f64,
    /// Median over the invocations.
    pub p99_s: f64,
    /// The invocation with the lowest one.
    pub low_s: f64,
    /// The invocation with the highest one.
    pub high_s: f64,
    /// How many invocations had this stretch.
    pub n: usize,
}

/// Operations that must lie beyond a percentile for it to say something.
const BEYOND_MIN: f64 = 10.0;

/// The systems of a case with logs, in the order of the plan.
pub(crate) fn for_case(stored: &StoredRun, case: &CasePlan) -> Vec<KeptLatencies> {
    let kept = case.compared().filter_map(|system| {
        let samples = group(&stored.samples, &case.name, system, Arm::Main);
        let logs: Vec<&LatencyLog> = samples
            .into_iter()
            .filter(|sample| sample.outcome == Outcome::Done)
            .filter_map(|sample| stored.latencies.get(sample.histogram.as_ref()?))
            .collect();
        (!logs.is_empty()).then(|| KeptLatencies {
            system: system.clone(),
            curve: curve(&logs),
            by_time: by_time(&logs),
        })
    });
    kept.collect()
}

/// Percentiles from 10 on, ten in each nine: 10, 20, ... 90, 91, ... 99, 99.1, ...
fn curve(logs: &[&LatencyLog]) -> Vec<(f64, f64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (ns, count) in logs.iter().flat_map(|log| &log.counts) {
        *counts.entry(*ns).or_default() += count;
    }
    let total = counts.values().sum::<u64>() as f64;
    let mut buckets = counts.into_iter();
    let (mut ns, mut seen) = (0, 0.0);
    let mut points = Vec::new();
    for nine in 0..6 {
        for step in 1..10 {
            let beyond = f64::from(10 - step) * 10_f64.powi(-nine - 1);
            if total * beyond < BEYOND_MIN {
                return points;
            }
            // The counts are walked once, because each percentile is beyond the one before it.
            while seen < total * (1.0 - beyond) {
                let Some((value, count)) = buckets.next() else {
                    return points;
                };
                (ns, seen) = (value, seen + count as f64);
            }
            // Seven digits: 99.99 would otherwise be printed as 99.99000000000001.
            let percentile = ((1.0 - beyond) * 1e9).round() / 1e7;
            points.push((percentile, ns as f64 / 1e9));
        }
    }
    points
}

/// The stretches of the invocations side by side, by their time: a log leaves out those in which
/// nothing ended, so that their numbers say nothing.
fn by_time(logs: &[&LatencyLog]) -> Vec<LatencyAt> {
    // Logs keep milliseconds, and numbers with a point cannot be keys.
    let microseconds = |span: &LatencySpan| (span.middle_s * 1e6).round() as u64;
    let mut stretches: BTreeMap<u64, Vec<LatencySpan>> = BTreeMap::new();
    for span in logs.iter().flat_map(|log| &log.spans) {
        let stretch = stretches.entry(microseconds(span)).or_default();
        stretch.push(*span);
    }
    let points = stretches.values().filter_map(|spans| {
        let p99s: Vec<f64> = spans.iter().map(|span| span.p99_s).collect();
        Some(LatencyAt {
            at_s: spans.first()?.middle_s,
            p99_s: median(&p99s).ok()?,
            low_s: p99s.iter().copied().fold(f64::INFINITY, f64::min),
            high_s: p99s.iter().copied().fold(0.0, f64::max),
            n: p99s.len(),
        })
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(p99s: &[f64], counts: &[(u64, u64)]) -> LatencyLog {
        LatencyLog {
            spans: p99s
                .iter()
                .enumerate()
                .map(|(index, &p99_s)| LatencySpan {
                    middle_s: index as f64 + 0.5,
                    p99_s,
                })
                .collect(),
            counts: counts.iter().copied().collect(),
        }
    }

    #[test]
    fn operations_of_all_invocations_make_one_curve() {
        let [a, b] = [
            log(&[], &[(1_000, 450), (2_000, 50)]),
            log(&[], &[(1_000, 450), (9_000, 50)]),
        ];
        let curve = curve(&[&a, &b]);
        let at = |percentile: f64| {
            curve
                .iter()
                .find(|(p, _)| *p == percentile)
                .map(|(_, s)| *s)
        };
        assert_eq!(at(50.0), Some(1e-6));
        assert_eq!(at(90.0), Some(1e-6), "900 of 1,000 took a microsecond");
        assert_eq!(at(94.0), Some(2e-6));
        assert_eq!(at(99.0), Some(9e-6));
        assert_eq!(
            at(99.9),
            None,
            "one operation lies beyond it, which says nothing"
        );
    }

    #[test]
    fn stretches_are_set_side_by_side_and_a_short_run_ends_early() {
        let [a, b] = [log(&[1.0, 5.0], &[]), log(&[3.0], &[])];
        let by_time = by_time(&[&a, &b]);
        let seen: Vec<_> = by_time
            .iter()
            .map(|at| (at.p99_s, at.low_s, at.high_s, at.n))
            .collect();
        assert_eq!(seen, [(2.0, 1.0, 3.0, 2), (5.0, 5.0, 5.0, 1)]);
    }

    #[test]
    fn a_stretch_in_which_nothing_ended_moves_no_later_one() {
        let mut stalled = log(&[1.0, 5.0, 7.0], &[]);
        stalled.spans.remove(1);
        let steady = log(&[1.0, 1.0, 1.0], &[]);
        let by_time = by_time(&[&steady, &stalled]);
        let seen: Vec<_> = by_time
            .iter()
            .map(|at| (at.at_s, at.high_s, at.n))
            .collect();
        assert_eq!(seen, [(0.5, 1.0, 2), (1.5, 1.0, 1), (2.5, 7.0, 2)]);
    }
}
