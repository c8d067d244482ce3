//! Figures are those of the conditions under which they were taken.

use dyno_record::Figures;

use super::{Finding, Severity, listed};

/// One finding for all of them: they spoiled the same figures.
pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let conditions = &figures.conditions;
    let names: Vec<&str> = conditions.iter().map(|c| c.name.as_str()).collect();
    let seen: Vec<&str> = conditions.iter().map(|c| c.seen.as_str()).collect();
    let finding = (!names.is_empty()).then(|| {
        Finding::new(
            "conditions",
            Severity::Warning,
            &listed(&names),
            seen.join("; "),
            "Each figure is that of the program under these conditions; another day has others.",
            "Take ratios of runs in turn, not figures alone; or mend the conditions and run again.",
        )
    });
    finding.into_iter().collect()
}
