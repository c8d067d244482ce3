//! A page of one repeated byte is not compressed, it is noted.

use dyno_record::Figures;

use super::{Finding, Severity};
use crate::units::quantity;

/// Words for pages of one repeated byte.
const SAME: [&str; 6] = [
    "same-filled",
    "same filled",
    "zeros",
    "zeroes",
    "zero",
    "constant",
];

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .figures
        .iter()
        .filter_map(|figure| {
            let pages = figure.pages.as_deref()?.to_lowercase();
            let case = figure.case.to_lowercase();
            let (severity, problem) = match pages.as_str() {
                // A case that says so in its name deceives no reader.
                held if SAME.contains(&held) && SAME.iter().any(|word| case.contains(word)) => {
                    return None;
                }
                held if SAME.contains(&held) => (Severity::Error, "ran on same-filled pages"),
                "unstated" => (Severity::Warning, "does not say what its pages held"),
                _ => return None,
            };
            Some(Finding {
                rule: "same-filled",
                severity,
                subject: figure.id.clone(),
                seen: format!("{} {problem}", quantity(figure.value, &figure.unit)),
                why: "A store of compressed pages keeps a same-filled page as one number, so \
                      nothing is compressed or decompressed."
                    .to_owned(),
                advice: "Fill pages with data of a stated compressibility, and print the ratio \
                         reached."
                    .to_owned(),
            })
        })
        .collect()
}
