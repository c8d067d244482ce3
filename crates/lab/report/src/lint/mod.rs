//! What a report should have noticed about itself. One file per rule, each a function over the
//! neutral [`Figures`], so that our reports answer to the same rules as anybody's.

mod above_limit;
mod asserted_limit;
mod build_profile;
mod changed_tree;
mod codec_order;
mod count;
mod failures;
mod generator;
mod littles_law;
mod mixed_row;
mod not_steady;
mod percentiles;
mod rate_times_time;
mod same_filled;
mod short_cell;
mod spread;
mod throttle;
mod total;
mod two_values;
mod winner;

use std::fmt::Write;

use dyno_record::Figures;
use serde::Serialize;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The figure cannot be what it is said to be.
    Error,
    /// The figure does not carry the conclusion drawn from it.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The word that reports print.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One thing that is wrong, or not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Kebab-case and stable.
    pub rule: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// The figure, case or property.
    pub subject: String,
    /// What was seen, with the numbers.
    pub seen: String,
    /// Why that matters.
    pub why: String,
    /// What to do about it.
    pub advice: String,
}

type Rule = fn(&Figures) -> Vec<Finding>;

const RULES: [Rule; 20] = [
    above_limit::check,
    rate_times_time::check,
    littles_law::check,
    count::check,
    total::check,
    two_values::check,
    percentiles::check,
    codec_order::check,
    same_filled::check,
    throttle::check,
    generator::check,
    winner::check,
    not_steady::check,
    spread::check,
    short_cell::check,
    mixed_row::check,
    failures::check,
    build_profile::check,
    changed_tree::check,
    asserted_limit::check,
];

/// Holds every rule against `figures`: the gravest findings first, those of one weight in the
/// order of the rules.
pub fn lint(figures: &Figures) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(figures)).collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// The findings as Markdown, for a terminal or a file.
pub fn lint_markdown(figures: &Figures, findings: &[Finding]) -> String {
    let mut text = format!(
        "# Findings: {}\n\nSource: {}\n",
        figures.title, figures.source
    );
    if findings.is_empty() {
        text.push_str("\nNo rule found anything.\n");
    }
    for f in findings {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n- **{} {}** {}: {}. {} *{}*\n",
            f.severity.as_str(),
            f.rule,
            f.subject,
            f.seen,
            f.why,
            f.advice
        );
    }
    text
}

/// The findings as text for a terminal: a line for each finding, and below it, indented, what was
/// seen, why it matters and what to do.
pub fn lint_text(figures: &Figures, findings: &[Finding]) -> String {
    let mut text = format!("Findings: {}\nSource: {}\n", figures.title, figures.source);
    if findings.is_empty() {
        text.push_str("\nNo rule found anything.\n");
    }
    for f in findings {
        let severity = f.severity.as_str();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{severity} {}: {}\n  {}.\n  {}\n  {}\n",
            f.rule, f.subject, f.seen, f.why, f.advice
        );
    }
    text
}

/// A few names in full, many as the first two and a number: forty lines of one complaint hide
/// the others.
fn listed(names: &[&str]) -> String {
    match names {
        [first, second, rest @ ..] if rest.len() > 1 => {
            format!("{first}, {second} and {} more", rest.len())
        }
        few => few.join(", "),
    }
}

/// How far `seen` is from `expected`, as a share of `expected`.
fn off_by(seen: f64, expected: f64) -> f64 {
    ((seen - expected) / expected).abs()
}
