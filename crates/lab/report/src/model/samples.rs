//! Which samples a figure is made of, and what they say.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::{Arm, Sample};

/// The value of a metric in one sample that ended well. `cpu`, `peak-rss` and `time` fall back on
/// what the runner saw from outside.
pub(crate) fn value_of(sample: &Sample, metric: &str) -> Option<f64> {
    let usage = &sample.usage;
    sample.metrics.get(metric).copied().or(match metric {
        "cpu" => usage.user_s.zip(usage.system_s).map(|(u, s)| u + s),
        "peak-rss" => usage.peak_rss_bytes.map(|bytes| bytes as f64),
        "time" => Some(sample.wall_s),
        _ => None,
    })
}

/// The samples of one case, system and arm.
pub(crate) fn group<'a>(
    samples: &'a [Sample],
    case: &str,
    system: &str,
    arm: Arm,
) -> Vec<&'a Sample> {
    let belongs = |s: &&Sample| s.case == case && s.system == system && s.arm == arm;
    samples.iter().filter(belongs).collect()
}

/// The value that all agree on, or every one of them with a stroke between.
pub(crate) fn one_value<'a>(values: impl Iterator<Item = &'a str>) -> Option<String> {
    let distinct: BTreeSet<&str> = values.collect();
    (!distinct.is_empty()).then(|| distinct.into_iter().collect::<Vec<_>>().join(" / "))
}

/// Texts that differ in their first number alone as one text with the range of it:
/// `processor (1.86 to 1.95 of 2 threads busy)`. Those that differ otherwise stand side by side.
pub(crate) fn with_range(texts: &[&str]) -> Option<String> {
    let mut forms: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for text in texts {
        let number = |c: char| c.is_ascii_digit() || c == '.';
        let from = text
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(text.len());
        let rest = &text[from..];
        let (found, after) = rest.split_at(rest.find(|c| !number(c)).unwrap_or(rest.len()));
        forms.entry((&text[..from], after)).or_default().push(found);
    }
    let value = |text: &str| text.parse::<f64>().unwrap_or(0.0);
    let parts: Vec<String> = forms
        .into_iter()
        .map(|((before, after), mut numbers)| {
            numbers.sort_by(|a, b| value(a).total_cmp(&value(b)));
            let (low, high) = (numbers[0], numbers[numbers.len() - 1]);
            match value(low) == value(high) {
                true => format!("{before}{low}{after}"),
                false => format!("{before}{low} to {high}{after}"),
            }
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_differ_in_a_number_become_one_with_its_range() {
        let busy = |n: &str| format!("processor ({n} of 2 threads busy)");
        let [a, b, c] = ["1.95", "1.86", "1.91"].map(busy);
        let text = with_range(&[&a, &b, &c]);
        assert_eq!(
            text.as_deref(),
            Some("processor (1.86 to 1.95 of 2 threads busy)")
        );
        assert_eq!(with_range(&["parse", "parse"]).as_deref(), Some("parse"));
        assert_eq!(
            with_range(&["parse", "inflate"]).as_deref(),
            Some("inflate or parse")
        );
        assert_eq!(with_range(&[]), None);
    }
}
