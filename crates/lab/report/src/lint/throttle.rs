//! A client that was told to go no faster measures what it was told.

use dyno_record::{Better, Figures};

use super::{Finding, Severity, off_by};
use crate::units::quantity;

const TOLERANCE: f64 = 0.03;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .figures
        .iter()
        .filter(|figure| figure.better == Better::Higher && figure.unit.ends_with("/s"))
        .filter_map(|figure| {
            let offered = figure.offered_rate?;
            (off_by(figure.value, offered) <= TOLERANCE).then(|| Finding {
                rule: "own-throttle",
                severity: Severity::Error,
                subject: figure.id.clone(),
                seen: format!(
                    "{} achieved, {} offered by the client",
                    quantity(figure.value, &figure.unit),
                    quantity(offered, &figure.unit)
                ),
                why: "The figure is the client's own throttle, not what the server can do."
                    .to_owned(),
                advice: "Raise the rate until latency grows without end, or report latency at \
                         this rate instead."
                    .to_owned(),
            })
        })
        .collect()
}
