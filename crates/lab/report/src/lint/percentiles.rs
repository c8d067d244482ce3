//! Percentiles rise, and rest on samples.

use dyno_record::{Figures, LatencyFigure};

use super::{Finding, Severity};
use crate::units::{number, quantity};

/// A percentile with fewer samples above it is the mood of a few requests.
const SAMPLES_ABOVE: f64 = 10.0;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let disorder = figures.latencies.iter().filter_map(out_of_order);
    let thin = figures.latencies.iter().filter_map(thin_tail);
    disorder.chain(thin).collect()
}

fn out_of_order(latency: &LatencyFigure) -> Option<Finding> {
    let mut points = latency.points.clone();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let pair = points.windows(2).find(|pair| pair[1].1 < pair[0].1)?;
    Some(Finding {
        rule: "percentile-order",
        severity: Severity::Error,
        subject: latency.subject.clone(),
        seen: format!(
            "p{} is {}, below p{} at {}",
            pair[1].0,
            quantity(pair[1].1, &latency.unit),
            pair[0].0,
            quantity(pair[0].1, &latency.unit)
        ),
        why: "A higher percentile cannot be lower: they were mixed up, or averaged.".to_owned(),
        advice: "Merge histograms, then read the percentiles off the merged one.".to_owned(),
    })
}

fn thin_tail(latency: &LatencyFigure) -> Option<Finding> {
    let count = latency.count?;
    let above = |percentile: f64| count * (1.0 - percentile / 100.0);
    // The maximum (p100) claims nothing beyond itself.
    let (percentile, _) = latency
        .points
        .iter()
        .filter(|(p, _)| *p < 100.0)
        .find(|(p, _)| above(*p) < SAMPLES_ABOVE - 1e-6)?;
    Some(Finding {
        rule: "percentile-count",
        severity: Severity::Warning,
        subject: latency.subject.clone(),
        seen: format!(
            "p{percentile} of {} requests has {} above it",
            number(count),
            number((above(*percentile) * 10.0).round() / 10.0)
        ),
        why: "With fewer than ten above it, it will be another number next time.".to_owned(),
        advice: "Measure longer, or quote a lower percentile.".to_owned(),
    })
}
