//! A load generator that fell behind did not offer the load it names.

use dyno_record::{Figures, QuotedFigure};

use super::{Finding, Severity};
use crate::units::quantity;

/// A generator later than this share of the median latency has become part of it.
const LAG_SHARE: f64 = 0.10;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures.figures.iter().filter_map(judge).collect()
}

fn judge(figure: &QuotedFigure) -> Option<Finding> {
    let lag = figure.generator_lag_s.zip(figure.latency_p50_s);
    let late = lag.filter(|(lag, median)| *lag > median * LAG_SHARE);
    let lateness = late.map(|(lag, median)| {
        format!(
            "requests left {} late (p99), with a median latency of {}",
            quantity(lag, "s"),
            quantity(median, "s")
        )
    });
    // The report's own judgement of its generator stands. Where that is good, lateness is still a
    // part of every latency that is counted from the schedule.
    let (severity, seen) = match (figure.generator_kept_up, lateness) {
        (Some(false), _) => {
            let seen = "the load generator did not keep its schedule".to_owned();
            (Severity::Error, seen)
        }
        (None, Some(seen)) => (Severity::Error, seen),
        (Some(true), Some(seen)) => (Severity::Warning, seen),
        (_, None) => return None,
    };
    Some(Finding {
        rule: "generator-behind",
        severity,
        subject: figure.id.clone(),
        seen,
        why: "The system met a gentler load than the one that is named.".to_owned(),
        advice: "Give the generator more cores or offer less, and run again.".to_owned(),
    })
}
