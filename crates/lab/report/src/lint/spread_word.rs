//! A variance is a variance.

use dyno_record::{Figures, SpreadWord};

use super::{Finding, Severity, off_by};
use crate::units::number;

/// Printed digits lose less than this.
const ROUNDED: f64 = 0.10;

/// Measures of spread by the words for them; those that end in % are shares of the mean.
const WORDS: [(&str, &str); 13] = [
    ("variance", "variance"),
    ("standard deviation", "standard deviation"),
    ("std dev", "standard deviation"),
    ("stddev", "standard deviation"),
    ("sigma", "standard deviation"),
    ("standard error", "standard error"),
    ("coefficient of variation", "deviation %"),
    ("cv", "deviation %"),
    ("rsd", "deviation %"),
    ("range", "range"),
    ("spread", "range"),
    ("range over mean", "range %"),
    ("half range over mean", "half range %"),
];

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures.spread_words.iter().filter_map(judge).collect()
}

/// Every measure of these samples; shares in percent.
fn measures(samples: &[f64]) -> [(&'static str, f64); 8] {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let squares = samples.iter().map(|sample| (sample - mean).powi(2));
    let variance = squares.sum::<f64>() / (n - 1.0);
    let low = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let high = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let percent = 100.0 / mean;
    [
        ("variance", variance),
        ("standard deviation", variance.sqrt()),
        ("standard error", (variance / n).sqrt()),
        ("range", high - low),
        ("deviation %", variance.sqrt() * percent),
        ("error %", (variance / n).sqrt() * percent),
        ("range %", (high - low) * percent),
        ("half range %", (high - low) / 2.0 * percent),
    ]
}

fn judge(word: &SpreadWord) -> Option<Finding> {
    let lowercase = word.word.to_lowercase();
    let (_, name) = WORDS.iter().find(|(one, _)| *one == lowercase)?;
    // A variance has the square of the unit, so no percentage is one.
    let name = match (*name, word.unit.as_str()) {
        ("standard deviation", "%") => "deviation %",
        ("standard error", "%") => "error %",
        ("range", "%") => "range %",
        (name, _) => name,
    };
    if word.samples.len() < 2 {
        return None;
    }
    // All measures are computed and not only the stated one, so that the finding can say which of
    // them the number is.
    let all = measures(&word.samples);
    let is_it = |value: f64| off_by(word.stated, value) <= ROUNDED;
    let right = all.iter().find(|(one, _)| *one == name)?.1;
    if is_it(right) {
        return None;
    }
    let meant = all
        .iter()
        .filter(|(_, value)| is_it(*value))
        .map(|(one, _)| match one.strip_suffix(" %") {
            Some(share) => format!("the {share} over the mean, in percent"),
            None => format!("the {one}"),
        });
    let meant = meant.collect::<Vec<_>>().join(" or ");
    let but = if meant.is_empty() {
        String::new()
    } else {
        format!("; it is {meant}")
    };
    Some(Finding::new(
        "spread-word",
        Severity::Error,
        &word.subject,
        format!(
            "{}{} is called {}, which is {}{but}",
            number(word.stated),
            word.unit,
            word.word,
            number(right)
        ),
        "A reader who knows the word computes with another spread than the one that was seen.",
        "Call it by its name, or print the samples.",
    ))
}
