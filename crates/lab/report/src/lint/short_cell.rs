//! What is shorter than a thousand clock readings measures the clock.

use dyno_record::{Figures, QuotedFigure};

use super::unit::things_per_second;
use super::{Finding, Severity, listed};
use crate::units::quantity;

const TIMER_COSTS: f64 = 1000.0;
/// Assumed where the figures do not say: a wall clock read by a program that was not built for
/// measuring, with the start of a thread or a file's creation inside the interval, is good to some
/// 10 microseconds.
const TIMER_ASSUMED_NS: f64 = 10_000.0;

/// Seconds of one sample; where they are not printed, its work over its rate.
fn duration_s(figure: &QuotedFigure) -> Option<f64> {
    figure.duration_s.or_else(|| {
        let rate = things_per_second(figure.value, &figure.unit)?;
        Some(figure.count? / rate)
    })
}

/// Whether a sample of the figure lasts less than a thousand clock readings.
pub(super) fn is_short(figures: &Figures, figure: &QuotedFigure) -> bool {
    let cost_ns = figures.timer_cost_ns.unwrap_or(TIMER_ASSUMED_NS);
    duration_s(figure).is_some_and(|seconds| seconds < cost_ns * 1e-9 * TIMER_COSTS)
}

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let (cost_ns, basis) = match figures.timer_cost_ns {
        Some(cost) => (cost, "measured"),
        None => (TIMER_ASSUMED_NS, "assumed, since none is stated"),
    };
    let timed = figures.figures.iter();
    let short: Vec<(&str, f64)> = timed
        .filter(|figure| is_short(figures, figure))
        .filter_map(|figure| Some((figure.id.as_str(), duration_s(figure)?)))
        .collect();
    if short.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = short.iter().map(|(id, _)| *id).collect();
    let shortest_s = short.iter().map(|(_, d)| *d).fold(f64::INFINITY, f64::min);
    vec![Finding {
        rule: "short-cell",
        severity: Severity::Warning,
        subject: listed(&names),
        seen: format!(
            "the shortest sample lasts {}; the timer costs {} ({basis})",
            quantity(shortest_s, "s"),
            quantity(cost_ns, "ns")
        ),
        why: "The clock and the start of the work are a visible part of the figure.".to_owned(),
        advice: "Give it more work, or repeat it inside one reading of the clock.".to_owned(),
    }]
}
