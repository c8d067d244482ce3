//! Little's law: requests in flight = rate x mean latency (Little, Operations Research 1961). It
//! holds for every closed loop, whatever the distributions. Where no mean is printed, the
//! percentiles bound it.

use dyno_record::{Figures, QuotedFigure};

use super::mean::{Bounds, bounds_of, printed_s};
use super::unit::things_per_second;
use super::{Finding, Severity, off_by};
use crate::units::{number, quantity};

/// The first and the last requests of a test are not in its mean.
const OF_A_MEAN: f64 = 0.10;
/// Printed digits lose less than this.
const OF_BOUNDS: f64 = 0.03;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let judge = |figure| judge(figures, figure);
    figures.figures.iter().filter_map(judge).collect()
}

fn judge(figures: &Figures, figure: &QuotedFigure) -> Option<Finding> {
    let in_flight = figure.in_flight.filter(|n| *n > 0.0)?;
    // A figure that is a rate is checked with itself, and a latency with the rate that was reached.
    let rate = things_per_second(figure.value, &figure.unit).or(figure.achieved_rate)?;
    let needed_s = in_flight / rate;
    // A rate of zero is a finding of the rule on numbers.
    if !needed_s.is_finite() || needed_s <= 0.0 {
        return None;
    }
    let printed = match printed_s(figures, figure) {
        Some(mean) if off_by(rate * mean, in_flight) <= OF_A_MEAN => return None,
        Some(mean) => format!("a mean of {}", quantity(mean, "s")),
        None => contradicted(bounds_of(figures, figure)?, needed_s)?,
    };
    Some(Finding::new(
        "littles-law",
        Severity::Error,
        &figure.id,
        format!(
            "{} in flight at {} means {} each, but the report allows {printed}",
            number(in_flight),
            quantity(rate, "/s"),
            quantity(needed_s, "s")
        ),
        "Time between requests is not in the latency, or the printed percentiles hide a heavy \
         tail.",
        "Print the mean and the number in flight, and start the clock where the last request \
         ended.",
    ))
}

/// What the percentiles allow, where that is not what the law asks for.
fn contradicted(bounds: Bounds, needed_s: f64) -> Option<String> {
    let (low, high) = (quantity(bounds.low, "s"), quantity(bounds.high, "s"));
    if needed_s < bounds.low * (1.0 - OF_BOUNDS) {
        return Some(format!("no mean below {low}"));
    }
    let assumed = if bounds.assumed {
        ", even if all beyond the last percentile took ten times as long"
    } else {
        ""
    };
    (needed_s > bounds.high * (1.0 + OF_BOUNDS)).then(|| format!("no mean above {high}{assumed}"))
}
