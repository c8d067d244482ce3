//! What is computed from a figure that cannot be right cannot be right either.

use std::collections::BTreeSet;

use dyno_record::Figures;

use super::{Finding, Severity};

/// Follows `from` from the subjects of errors in `found` until nothing more is reached.
pub(super) fn check(figures: &Figures, found: &[Finding]) -> Vec<Finding> {
    let errors = found.iter().filter(|f| f.severity == Severity::Error);
    let mut faulty: BTreeSet<String> = errors.map(|f| f.subject.clone()).collect();
    let mut derived = Vec::new();
    loop {
        let reached = figures.figures.iter().find_map(|figure| {
            let from = figure.from.iter().find(|name| faulty.contains(*name))?;
            let known = derived.iter().any(|f: &Finding| f.subject == figure.id);
            (!known).then_some((figure, from))
        });
        // Each turn adds one figure that was not reached before, so the search ends even if figures
        // are computed from one another in a circle.
        let Some((figure, from)) = reached else {
            return derived;
        };
        faulty.insert(figure.id.clone());
        derived.push(Finding::new(
            "derived",
            Severity::Error,
            &figure.id,
            format!("it is computed from {from}, which cannot be right"),
            "It is wrong by what that one is wrong by.",
            "Correct what it is computed from, and compute it anew.",
        ));
    }
}
