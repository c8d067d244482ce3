//! A total is the sum of its parts, an average their mean.

use dyno_record::{Figures, Total, TotalKind};

use super::{Finding, Severity, off_by};
use crate::units::number;

/// The parts are printed rounded, and their errors add up.
const TOLERANCE: f64 = 0.01;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures.totals.iter().filter_map(judge).collect()
}

fn judge(total: &Total) -> Option<Finding> {
    let sum: f64 = total.parts.iter().sum();
    let (word, computed) = match total.kind {
        TotalKind::Sum => ("sum", sum),
        TotalKind::Mean => ("mean", sum / total.parts.len() as f64),
    };
    (off_by(total.stated, computed) > TOLERANCE).then(|| Finding {
        rule: "total",
        severity: Severity::Error,
        subject: total.subject.clone(),
        seen: format!(
            "{} stated, but the {word} of its {} parts is {}",
            number(total.stated),
            total.parts.len(),
            number(computed)
        ),
        why: "A reader of the total reads something that the parts do not say.".to_owned(),
        advice: "Say how it was computed (a weighting, perhaps), or compute it anew.".to_owned(),
    })
}
