//! Little's law: requests in flight = rate x mean latency (Little, Operations Research 1961). It
//! holds for every closed loop, whatever the distributions.

use dyno_record::{Figures, QuotedFigure};

use super::{Finding, Severity, off_by};
use crate::units::{number, quantity};

const TOLERANCE: f64 = 0.10;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures.figures.iter().filter_map(judge).collect()
}

fn judge(figure: &QuotedFigure) -> Option<Finding> {
    let in_flight = figure.in_flight?;
    let (latency_s, which) = match (figure.latency_mean_s, figure.latency_p50_s) {
        (Some(mean), _) => (mean, "mean"),
        (None, Some(median)) => (median, "median (no mean is printed)"),
        (None, None) => return None,
    };
    if !figure.unit.ends_with("/s") || figure.value <= 0.0 {
        return None;
    }
    let implied = figure.value * latency_s;
    if off_by(implied, in_flight) <= TOLERANCE {
        return None;
    }
    Some(Finding {
        rule: "littles-law",
        severity: Severity::Error,
        subject: figure.id.clone(),
        seen: format!(
            "{} at a {which} latency of {} keeps {} in flight, not {}; {} in flight at that rate \
             means {} each",
            quantity(figure.value, &figure.unit),
            quantity(latency_s, "s"),
            number(implied),
            number(in_flight),
            number(in_flight),
            quantity(in_flight / figure.value, "s")
        ),
        why: "Time between requests is not in the latency, or the printed percentiles hide a \
              heavy tail."
            .to_owned(),
        advice: "Print the mean and the number in flight, and start the clock where the last \
                 request ended."
            .to_owned(),
    })
}
