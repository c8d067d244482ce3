//! What went in must come out, and be what the specification says.

use dyno_record::Figures;

use super::{Finding, Severity, off_by};

/// Room for the digits of a count that the report rounds (`about 10.8 billion`).
const ROUNDED: f64 = 0.005;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .counts
        .iter()
        .filter(|count| {
            if count.about {
                off_by(count.stated, count.expected) > ROUNDED
            } else {
                count.stated != count.expected
            }
        })
        .map(|count| Finding {
            rule: "count",
            severity: Severity::Error,
            subject: count.subject.clone(),
            seen: format!(
                "{} stated, {} expected ({})",
                count.stated, count.expected, count.why
            ),
            why: "A rate over a wrong count is wrong by the same factor.".to_owned(),
            advice: "Count the result itself, and divide by that.".to_owned(),
        })
        .collect()
}
