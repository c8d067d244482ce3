//! The rate of a service that changes while it is measured is a plot and not a number, and one that
//! was measured for a moment may change in the next.

use dyno_record::{Figures, MEASURED_MIN_S, QuotedFigure};

use super::{Finding, Severity, listed};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let drifting = figures.figures.iter().filter_map(|figure| {
        let drift = figure.drift?;
        let went = if drift < 0.0 { "fell" } else { "rose" };
        Some(Finding {
            rule: "not-steady",
            severity: Severity::Warning,
            subject: figure.id.clone(),
            seen: format!(
                "the rate {went} by {:.0}% while it was measured",
                drift.abs() * 100.0
            ),
            why: "Measured for longer it would be another number.".to_owned(),
            advice:
                "Find what costs more as it runs, or warm up for longer, and show the rate over \
                     time."
                    .to_owned(),
        })
    });
    drifting.chain(short(&figures.figures)).collect()
}

/// One finding for all of them: a report of bursts is one mistake.
fn short(figures: &[QuotedFigure]) -> Option<Finding> {
    let is_short = |figure: &&QuotedFigure| {
        // Windows are made of a clock's nanoseconds, so 20 s may be a little less.
        figure
            .windows_s
            .is_some_and(|seconds| seconds < MEASURED_MIN_S * 0.999)
    };
    let short: Vec<&QuotedFigure> = figures.iter().filter(is_short).collect();
    let names: Vec<&str> = short.iter().map(|figure| figure.id.as_str()).collect();
    let longest = short
        .iter()
        .filter_map(|figure| figure.windows_s)
        .fold(0.0, f64::max);
    (!names.is_empty()).then(|| Finding {
        rule: "short-run",
        severity: Severity::Warning,
        subject: listed(&names),
        seen: if longest > 0.0 {
            format!("the rate is shown over {longest:.1} s at most")
        } else {
            "the rate is not shown over time".to_owned()
        },
        why: "A service that slows down as it runs looks fast at first.".to_owned(),
        advice: format!(
            "Measure for {MEASURED_MIN_S} s at least, and for ten times what a checkpoint or a \
             cache holds."
        ),
    })
}
