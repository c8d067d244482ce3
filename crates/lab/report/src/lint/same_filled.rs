//! A page of one repeated byte is not compressed, it is noted.

use dyno_record::Figures;

use super::{Finding, Severity};
use crate::units::quantity;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .figures
        .iter()
        .filter_map(|figure| {
            let pages = figure.pages.as_deref()?;
            let (severity, said) = match pages {
                "same-filled" => (Severity::Error, "ran on same-filled pages"),
                "unstated" => (Severity::Warning, "does not say what its pages held"),
                _ => return None,
            };
            Some(Finding {
                rule: "same-filled",
                severity,
                subject: figure.id.clone(),
                seen: format!("{} {said}", quantity(figure.value, &figure.unit)),
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
