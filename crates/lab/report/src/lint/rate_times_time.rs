//! A rate times its time is the work that was done.

use dyno_record::Figures;

use super::unit::parse;
use super::{Finding, Severity, off_by};
use crate::units::{number, quantity};

/// Printed digits lose less than this.
const TOLERANCE: f64 = 0.03;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .figures
        .iter()
        .filter_map(|figure| {
            let (seconds, count) = (figure.duration_s?, figure.count?);
            let unit = parse(&figure.unit).filter(|unit| unit.is_rate())?;
            let product = figure.value * unit.factor() * seconds;
            // The count of a rate in MB/s may be in bytes or in MB.
            let counts = [count, count * unit.scale];
            let fits = counts
                .iter()
                .any(|count| off_by(product, *count) <= TOLERANCE);
            (!fits && product > 0.0 && count > 0.0).then(|| Finding {
                rule: "rate-times-time",
                severity: Severity::Error,
                subject: figure.id.clone(),
                seen: format!(
                    "{} for {} makes {}, not {}",
                    quantity(figure.value, &figure.unit),
                    quantity(seconds, "s"),
                    number(product),
                    number(count)
                ),
                why: "Rate, time and amount of work cannot all three be right.".to_owned(),
                advice: "Say which part of the work the clock covered, or correct the odd one."
                    .to_owned(),
            })
        })
        .collect()
}
