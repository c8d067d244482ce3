//! An invocation that failed is part of the result.

use dyno_record::Figures;

use super::{Finding, Severity};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .figures
        .iter()
        .filter(|figure| figure.failed > 0)
        .map(|figure| Finding {
            rule: "failures",
            severity: Severity::Warning,
            subject: figure.id.clone(),
            seen: format!(
                "{} invocations failed or hung beside {} that ended well",
                figure.failed,
                figure
                    .n
                    .map_or("an unstated number".to_owned(), |n| n.to_string())
            ),
            why: "The figure speaks only for those that ended.".to_owned(),
            advice: "Read the reasons below, mend the cause, and run again.".to_owned(),
        })
        .collect()
}
