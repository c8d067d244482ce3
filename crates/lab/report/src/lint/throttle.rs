//! A client that was told to go no faster measures what it was told.

use dyno_record::{Better, Figures, QuotedFigure};

use super::offered::{ABOVE, offered};
use super::{Finding, Severity};
use crate::units::quantity;

/// A throttled client loses up to this share of its rate to its own sleeping.
const BELOW: f64 = 0.10;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures.figures.iter().filter_map(judge).collect()
}

fn judge(figure: &QuotedFigure) -> Option<Finding> {
    let load = offered(figure)?;
    let share = load.reached / load.offered;
    // The latency of an open loop at a stated rate is what such a run is for.
    let is_latency_at_a_rate = figure.open_loop == Some(true)
        || figure.latency_p50_s.is_some()
        || figure.latency_mean_s.is_some()
        || figure.achieved_rate.is_some();
    let throttled = (1.0 - BELOW..=1.0 + ABOVE).contains(&share);
    if figure.better != Better::Higher || is_latency_at_a_rate || !throttled {
        return None;
    }
    Some(Finding::new(
        "own-throttle",
        Severity::Error,
        &figure.id,
        format!(
            "{} achieved, {} offered by the client",
            quantity(load.reached, load.unit),
            quantity(load.offered, load.unit)
        ),
        "The figure is the client's own throttle, not what the server can do.",
        "Raise the rate until latency grows without end, or report latency at this rate instead.",
    ))
}
