//! A limit that was not measured explains nothing.

use dyno_record::Figures;

use super::{Finding, Severity};
use crate::units::quantity;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .limits
        .iter()
        .filter(|limit| !limit.measured)
        .map(|limit| Finding {
            rule: "asserted-limit",
            severity: Severity::Note,
            subject: limit.name.clone(),
            seen: format!(
                "{} is asserted or taken from a data sheet",
                quantity(limit.value, &limit.unit)
            ),
            why: "That something is the bottleneck is shown by measuring it alone.".to_owned(),
            advice: "Measure the limit on the same machine, without the system in front of it."
                .to_owned(),
        })
        .collect()
}
