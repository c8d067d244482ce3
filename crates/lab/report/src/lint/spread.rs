//! A figure says how often it was measured and how far the samples lie apart.

use std::collections::BTreeMap;

use dyno_record::{Figures, QuotedFigure};

use super::{Finding, Severity, listed};

/// Below this, an interval of the median is wider than the range of the samples.
pub(super) const SAMPLES_MIN: u32 = 5;

/// One finding per state, with the figures it holds for.
pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let mut groups: BTreeMap<(Severity, String), Vec<&str>> = BTreeMap::new();
    for figure in &figures.figures {
        if let Some(state) = state(figure) {
            groups.entry(state).or_default().push(&figure.id);
        }
    }
    groups
        .into_iter()
        .map(|((severity, state), ids)| Finding {
            rule: "spread",
            severity,
            subject: listed(&ids),
            seen: state,
            why: "Without repetition a difference cannot be told from chance.".to_owned(),
            advice: format!("Repeat at least {SAMPLES_MIN} times and print the spread."),
        })
        .collect()
}

fn state(figure: &QuotedFigure) -> Option<(Severity, String)> {
    let spread = figure.low.is_some() && figure.high.is_some();
    match figure.n {
        None if !spread => Some((
            Severity::Warning,
            "neither n nor spread is given".to_owned(),
        )),
        None => Some((Severity::Note, "n is not given".to_owned())),
        Some(1) => Some((Severity::Warning, "n = 1: measured once".to_owned())),
        Some(n) if n < SAMPLES_MIN && spread => Some((Severity::Note, format!("n = {n}"))),
        Some(n) if !spread => Some((
            Severity::Warning,
            format!("n = {n}, but no spread is given"),
        )),
        Some(_) => None,
    }
}
