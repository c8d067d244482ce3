//! Nothing is faster than the machine.

use dyno_record::{Better, Ceiling, Figures, QuotedFigure};

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
    let per_unit = figure.limit_per_unit.unwrap_or(1.0);
    let ceiling = limit.best.unwrap_or(limit.value) * per_unit;
    let share = match figure.better {
        Better::Higher => figure.value / ceiling,
        Better::Lower => ceiling / figure.value,
    };
    if share.is_nan() || share <= 1.0 + TOLERANCE {
        return None;
    }
    let basis = if limit.measured { "measured" } else { "stated" };
    Some(Finding {
        rule: "above-limit",
        severity: Severity::Error,
        subject: figure.id.clone(),
        seen: format!(
            "{} is {} of the {basis} limit {} ({})",
            quantity(figure.value, &figure.unit),
            share_text(share),
            limit.name,
            quantity(ceiling, &figure.unit)
        ),
        why: "Work that beats the machine was not done, or the limit is not one.".to_owned(),
        advice: "Check that the work happened (a count, a checksum), then measure the limit again."
            .to_owned(),
    })
}
