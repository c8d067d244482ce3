//! Twice the threads do at most twice the work.

use std::collections::BTreeMap;

use dyno_record::{Figures, QuotedFigure};

use super::{Finding, Severity, ratio};
use crate::units::{number, quantity, ratio_text};

/// Each thread brings caches of its own, which may help this much.
const TOLERANCE: f64 = 0.10;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let mut sweeps: BTreeMap<[&str; 5], Vec<(f64, &QuotedFigure)>> = BTreeMap::new();
    for figure in &figures.figures {
        let Some(threads) = figure.threads.filter(|t| *t > 0.0) else {
            continue;
        };
        let key = [
            figure.sweep.as_deref().unwrap_or(&figure.case),
            &figure.system,
            &figure.metric,
            figure.machine.as_deref().unwrap_or(""),
            figure.program.as_deref().unwrap_or(""),
        ];
        sweeps.entry(key).or_default().push((threads, figure));
    }
    sweeps.into_values().filter_map(judge).collect()
}

fn judge(mut sweep: Vec<(f64, &QuotedFigure)>) -> Option<Finding> {
    sweep.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, rest) = sweep.split_first()?;
    // Every step is held against the smallest one. Neighbours would hide a slow gain that adds up
    // over the sweep.
    let (threads, figure, gain) = rest.iter().find_map(|(threads, figure)| {
        let gain = ratio(figure, first.1)?;
        let most = threads / first.0 * (1.0 + TOLERANCE);
        (gain > most).then_some((threads, figure, gain))
    })?;
    Some(Finding::new(
        "scaling",
        Severity::Warning,
        &figure.id,
        format!(
            "{} with {} threads is {} of {} with {}",
            quantity(figure.value, &figure.unit),
            number(*threads),
            ratio_text(gain),
            quantity(first.1.value, &first.1.unit),
            number(first.0)
        ),
        "More than proportional: the smaller run was held back by something else, such as a cold \
         cache or a busy machine.",
        "Repeat both in turn, and find what held the smaller one back.",
    ))
}
