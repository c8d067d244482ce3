//! A file that states nothing was not checked.

use dyno_record::Figures;

use super::{Finding, Severity};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let nothing = figures.figures.is_empty()
        && figures.counts.is_empty()
        && figures.totals.is_empty()
        && figures.properties.is_empty()
        && figures.latencies.is_empty()
        && figures.codecs.is_empty()
        && figures.spread_words.is_empty();
    let whole = nothing.then(|| finding(&figures.title, "no figure is stated"));
    // A table without rows passes every rule that goes over its rows, so it is an error by itself.
    let latencies = figures.latencies.iter().filter(|l| l.points.is_empty());
    let totals = figures.totals.iter().filter(|t| t.parts.is_empty());
    let properties = figures.properties.iter().filter(|p| p.values.is_empty());
    whole
        .into_iter()
        .chain(latencies.map(|l| finding(&l.subject, "no percentile is given")))
        .chain(totals.map(|t| finding(&t.subject, "no part is given")))
        .chain(properties.map(|p| finding(&p.subject, "no value is given")))
        .collect()
}

fn finding(subject: &str, seen: &str) -> Finding {
    Finding::new(
        "empty",
        Severity::Error,
        subject,
        seen.to_owned(),
        "Where nothing is stated no rule can find anything, which is not the same as being right.",
        "Write down what the report states.",
    )
}
