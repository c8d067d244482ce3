//! What went in must come out, and be what the specification says.

use dyno_record::Figures;

use super::{Finding, Severity, off_by};

/// Room for the digits of a rounded count (`10.8 billion`); exact counts are compared exactly.
const ROUNDED: f64 = 0.005;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .counts
        .iter()
        .filter(
            |count| match count.stated.fract() == 0.0 && count.expected < 1e7 {
                true => count.stated != count.expected,
                false => off_by(count.stated, count.expected) > ROUNDED,
            },
        )
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
