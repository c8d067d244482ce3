//! A program that cannot be built again cannot be checked.

use dyno_record::Figures;

use super::{Finding, Severity};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let revision = figures.revision.as_deref();
    let untraceable = revision.filter(|revision| revision.ends_with('+') || *revision == "unknown");
    untraceable
        .map(|revision| Finding {
            rule: "changed-tree",
            severity: Severity::Error,
            subject: figures.title.clone(),
            seen: match revision.strip_suffix('+') {
                Some(clean) => format!("the program was built from {clean} with changes beside it"),
                None => "the program was built outside a checkout".to_owned(),
            },
            why: "The sources that made these figures exist nowhere, so they can be neither read nor run again."
                .to_owned(),
            advice: "Commit, build again, and measure that.".to_owned(),
        })
        .into_iter()
        .collect()
}
