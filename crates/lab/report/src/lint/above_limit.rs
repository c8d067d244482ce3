//! Nothing is faster than the machine.

use dyno_record::{Better, Ceiling, Figures, QuotedFigure};

use super::unit::convert;
use super::{Finding, Severity};
use crate::units::{quantity, share_text};

/// Two measurements of one limit differ by this much on a quiet machine.
const TOLERANCE: f64 = 0.03;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .figures
        .iter()
        .filter_map(|figure| {
            let name = figure.limit.as_ref()?;
            let limit = figures.limits.iter().find(|limit| &limit.name == name)?;
            judge(figure, limit)
        })
        .collect()
}

fn judge(figure: &QuotedFigure, limit: &Ceiling) -> Option<Finding> {
    // The best repetition and not the median is held against the figure, because half of all
    // repetitions beat the median.
    let best = limit.best.unwrap_or(limit.value);
    let ceiling = match figure.limit_per_unit {
        Some(per_unit) => best * per_unit,
        // A limit in a unit that cannot be converted is a finding of the rule on units.
        None => convert(best, &limit.unit, &figure.unit)?,
    };
    let share = match figure.better {
        Better::Higher => figure.value / ceiling,
        Better::Lower => ceiling / figure.value,
    };
    // A rate of zero or an infinite one is not above a limit, it is not a number.
    if !share.is_finite() || share <= 1.0 + TOLERANCE {
        return None;
    }
    let basis = if limit.measured { "measured" } else { "stated" };
    let seen = format!(
        "{} is {} of the {basis} limit {} ({})",
        quantity(figure.value, &figure.unit),
        share_text(share),
        limit.name,
        quantity(ceiling, &figure.unit)
    );
    Some(Finding::new(
        "above-limit",
        Severity::Error,
        &figure.id,
        seen,
        "Work that beats the machine was not done, or the limit is not one.",
        "Check that the work happened (a count, a checksum), then measure the limit again.",
    ))
}
