//! Rules for what a report should have noticed about itself. There is one file per rule, each a
//! function over the neutral [`Figures`], so that our reports answer to the same rules as those of
//! others.

mod above_limit;
mod asserted_limit;
mod build_profile;
mod changed_tree;
mod claim_across;
mod claim_ratio;
mod codec_order;
mod conditions;
mod count;
mod derived;
mod empty;
mod failures;
mod generator;
mod littles_law;
mod mean;
mod mean_bounds;
mod mixed_row;
mod not_steady;
mod numbers;
mod offered;
mod outside_spread;
mod percentiles;
mod rate_times_time;
mod same_filled;
mod scaling;
mod short_cell;
mod spread;
mod spread_word;
mod throttle;
mod title;
mod total;
mod two_methods;
mod two_values;
mod unit;
mod units;
mod winner;

use std::fmt::Write;

use dyno_record::{Better, Claim, Figures, QuotedFigure};
use serde::Serialize;

use crate::units::counted;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The figure cannot be what it is said to be.
    Error,
    /// The figure does not carry the conclusion drawn from it.
    Warning,
    /// Worth knowing; the figure may still be quoted.
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
    /// Name of the rule in kebab-case, which stays the same over versions.
    pub rule: &'static str,
    /// How much the finding weighs.
    pub severity: Severity,
    /// The figure, case or property.
    pub subject: String,
    /// What was seen, with the numbers.
    pub seen: String,
    /// Why a reader of the figure should care.
    pub why: String,
    /// What to do about it.
    pub advice: String,
}

impl Finding {
    fn new(
        rule: &'static str,
        severity: Severity,
        subject: &str,
        seen: String,
        why: &str,
        advice: &str,
    ) -> Self {
        Self {
            rule,
            severity,
            subject: subject.to_owned(),
            seen,
            why: why.to_owned(),
            advice: advice.to_owned(),
        }
    }
}

/// A rule, and whether there is anything in the figures that it could find wrong.
type Rule = (fn(&Figures) -> Vec<Finding>, fn(&Figures) -> bool);

/// The rules. One that has nothing to look at is not counted among those that were held against a
/// report.
const RULES: [Rule; 33] = [
    (empty::check, |_| true),
    (numbers::check, |_| true),
    (outside_spread::check, |f| {
        any(f, |q| q.low.is_some() || q.high.is_some())
    }),
    (units::check, |f| {
        any(f, |q| q.limit.is_some()) || !f.claims.is_empty()
    }),
    (above_limit::check, |f| any(f, |q| q.limit.is_some())),
    (rate_times_time::check, |f| {
        any(f, |q| q.duration_s.is_some() && q.count.is_some())
    }),
    (littles_law::check, |f| any(f, |q| q.in_flight.is_some())),
    (mean_bounds::check, |f| {
        any(f, |q| mean::table_of(f, q).is_some())
    }),
    (count::check, |f| !f.counts.is_empty()),
    (title::check, |f| !f.headings.is_empty()),
    (total::check, |f| !f.totals.is_empty()),
    (two_values::check, |f| !f.properties.is_empty()),
    (percentiles::check, |f| !f.latencies.is_empty()),
    (spread_word::check, |f| !f.spread_words.is_empty()),
    (codec_order::check, |f| !f.codecs.is_empty()),
    (same_filled::check, |f| any(f, |q| q.pages.is_some())),
    (offered::check, |f| any(f, |q| q.offered_rate.is_some())),
    (throttle::check, |f| any(f, |q| q.offered_rate.is_some())),
    (generator::check, |f| {
        any(f, |q| {
            q.generator_lag_s.is_some() || q.generator_kept_up.is_some()
        })
    }),
    (claim_ratio::check, |f| !f.claims.is_empty()),
    (claim_across::check, |f| !f.claims.is_empty()),
    (winner::check, |f| !f.claims.is_empty()),
    (scaling::check, |f| any(f, |q| q.threads.is_some())),
    (not_steady::check, |f| {
        any(f, |q| q.windows_s.is_some() || q.drift.is_some())
    }),
    (spread::check, |f| !f.figures.is_empty()),
    (short_cell::check, |f| {
        any(f, |q| q.duration_s.is_some() || q.count.is_some())
    }),
    (mixed_row::check, |f| {
        any(f, |q| q.machine.is_some() || q.program.is_some())
    }),
    (failures::check, |f| !f.figures.is_empty()),
    (two_methods::check, |f| !f.limits.is_empty()),
    (conditions::check, |f| !f.conditions.is_empty()),
    (build_profile::check, |f| f.build.is_some()),
    (changed_tree::check, |f| f.revision.is_some()),
    (asserted_limit::check, |f| {
        f.limits.iter().any(|limit| !limit.measured)
    }),
];

fn any(figures: &Figures, has: impl Fn(&QuotedFigure) -> bool) -> bool {
    figures.figures.iter().any(has)
}

/// Holds every rule against `figures`: the gravest findings first, those of one weight in the
/// order of the rules.
pub fn lint(figures: &Figures) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|(rule, _)| rule(figures)).collect();
    // The rule on derived figures needs the errors of all others, so it is not one of the list. The
    // sort is stable and keeps the order of the rules within one weight.
    findings.extend(derived::check(figures, &findings));
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// What was held against what: `18 rules over 12 figures, 3 limits`. Rules that found nothing to
/// look at are not counted.
pub fn lint_scope(figures: &Figures) -> String {
    let applied = RULES.iter().filter(|(_, applies)| applies(figures)).count();
    let parts = [
        (figures.figures.len(), "figure"),
        (figures.limits.len(), "limit"),
        (figures.claims.len(), "claim"),
        (figures.counts.len(), "count"),
        (figures.latencies.len(), "table of percentiles"),
    ];
    let parts = parts.iter().filter(|(n, _)| *n > 0);
    let counted: Vec<String> = parts
        .map(|(n, thing)| match (*n, *thing) {
            (n, "table of percentiles") if n > 1 => format!("{n} tables of percentiles"),
            (n, thing) => counted(n as u64, thing),
        })
        .collect();
    let over = if counted.is_empty() {
        "nothing".to_owned()
    } else {
        counted.join(", ")
    };
    format!("{applied} of {} rules over {over}", RULES.len())
}

/// The findings as Markdown, for a terminal or a file.
pub fn lint_markdown(figures: &Figures, findings: &[Finding]) -> String {
    let mut text = format!(
        "# Findings: {}\n\nSource: {}\n",
        figures.title, figures.source
    );
    text.push_str(&summary(figures, findings));
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

/// What was looked at, what cannot be known, and that nothing was found where that is so.
fn summary(figures: &Figures, findings: &[Finding]) -> String {
    let mut text = format!("\n{}.\n", lint_scope(figures));
    if !figures.unknown.is_empty() {
        text.push_str("\nWhat cannot be known from this file:\n\n");
        for sentence in &figures.unknown {
            let _ = writeln!(text, "- {sentence}");
        }
    }
    if findings.is_empty() {
        text.push_str("\nNo rule found anything.\n");
    }
    text
}

/// The findings as text for a terminal: a line for each finding, and below it, indented, what was
/// seen, why it matters and what to do.
pub fn lint_text(figures: &Figures, findings: &[Finding]) -> String {
    let mut text = format!("Findings: {}\nSource: {}\n", figures.title, figures.source);
    text.push_str(&summary(figures, findings));
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

/// The two figures of a claim.
fn pair<'a>(figures: &'a Figures, claim: &Claim) -> Option<(&'a QuotedFigure, &'a QuotedFigure)> {
    let find = |id: &String| figures.figures.iter().find(|figure| &figure.id == id);
    find(&claim.winner).zip(find(&claim.loser))
}

/// How many times as good `winner` is; nothing when the units measure different things.
fn ratio(winner: &QuotedFigure, loser: &QuotedFigure) -> Option<f64> {
    let other = unit::convert(loser.value, &loser.unit, &winner.unit)?;
    let ratio = match winner.better {
        Better::Higher => winner.value / other,
        Better::Lower => other / winner.value,
    };
    ratio.is_finite().then_some(ratio)
}

/// How far `seen` is from `expected`, as a share of `expected`.
fn off_by(seen: f64, expected: f64) -> f64 {
    ((seen - expected) / expected).abs()
}
