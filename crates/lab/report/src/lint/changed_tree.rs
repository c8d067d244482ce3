//! A program that cannot be built again cannot be checked.

use dyno_record::{Figures, untraceable};

use super::{Finding, Severity};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let seen = figures.revision.as_deref().and_then(untraceable);
    seen.map(|seen| Finding {
        rule: "changed-tree",
        severity: Severity::Error,
        subject: figures.title.clone(),
        seen: format!("the program cannot be built again ({seen})"),
        why: "The sources that made these figures exist nowhere, so they can be neither read nor \
              run again."
            .to_owned(),
        advice: "Commit, build again, and measure that.".to_owned(),
    })
    .into_iter()
    .collect()
}
