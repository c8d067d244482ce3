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

/// Texts that differ in their numbers alone as one text with the range of each:
/// `processor (1.86 to 1.95 of 2 threads busy)`. Those that differ otherwise stand side by side.
pub(crate) fn with_range(texts: &[&str]) -> Option<String> {
    let mut forms: BTreeMap<Vec<&str>, Vec<Vec<&str>>> = BTreeMap::new();
    for text in texts {
        let (between, numbers) = taken_apart(text);
        forms.entry(between).or_default().push(numbers);
    }
    let parts: Vec<String> = forms
        .iter()
        .map(|(between, texts)| {
            let mut whole = between[0].to_owned();
            for (at, behind) in between[1..].iter().enumerate() {
                whole += &range(texts.iter().map(|numbers| numbers[at]));
                whole += behind;
            }
            whole
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join(" or "))
}

/// The numbers in a text, and what stands before, between and behind them.
fn taken_apart(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut between, mut numbers) = (Vec::new(), Vec::new());
    let mut rest = text;
    while let Some(from) = rest.find(|c: char| c.is_ascii_digit()) {
        let behind = rest[from..].find(|c: char| !c.is_ascii_digit() && c != '.');
        let to = behind.map_or(rest.len(), |length| from + length);
        between.push(&rest[..from]);
        numbers.push(&rest[from..to]);
        rest = &rest[to..];
    }
    between.push(rest);
    (between, numbers)
}

/// One number, or the least and the greatest of several.
fn range<'a>(numbers: impl Iterator<Item = &'a str>) -> String {
    let value = |text: &str| text.parse::<f64>().unwrap_or(0.0);
    let mut numbers: Vec<&str> = numbers.collect();
    numbers.sort_by(|a, b| value(a).total_cmp(&value(b)));
    match numbers[..] {
        [low, .., high] if value(low) != value(high) => format!("{low} to {high}"),
        [number, ..] => number.to_owned(),
        [] => String::new(),
    }
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
        let late = |us: &str, p: &str| format!("started {us} us late at {p}");
        let [a, b] = [late("900", "p99"), late("1200", "p99")];
        let text = with_range(&[&b, &a, &late("1000", "p999")]);
        assert_eq!(
            text.as_deref(),
            Some("started 900 to 1200 us late at p99 to 999")
        );
        assert_eq!(with_range(&["parse", "parse"]).as_deref(), Some("parse"));
        assert_eq!(
            with_range(&["parse", "inflate"]).as_deref(),
            Some("inflate or parse")
        );
        assert_eq!(with_range(&[]), None);
    }
}
