//! What was achieved is what was offered, or less; and when it is less, latency means nothing.

use dyno_record::{Figures, QuotedFigure};

use super::mean::table_of;
use super::unit::parse;
use super::{Finding, Severity};
use crate::units::{quantity, share_text};

/// A clock that is read around the work, not at its start, gives this much more.
pub(super) const ABOVE: f64 = 0.03;

/// The rate that a client was told, and the one that it reached.
pub(super) struct Load<'a> {
    pub(super) reached: f64,
    pub(super) offered: f64,
    pub(super) unit: &'a str,
}

/// The load of a figure that states one.
pub(super) fn offered(figure: &QuotedFigure) -> Option<Load<'_>> {
    let offered = figure.offered_rate?;
    let is_rate = parse(&figure.unit).is_some_and(|unit| unit.is_rate());
    // A figure that is a latency states the reached rate beside it, and a rate is that itself.
    // Without either nothing can be said of the load.
    let (reached, unit) = match (figure.achieved_rate, is_rate) {
        (Some(achieved), _) => (achieved, "/s"),
        (None, true) => (figure.value, figure.unit.as_str()),
        (None, false) => return None,
    };
    Some(Load {
        reached,
        offered,
        unit,
    })
}

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let judge = |figure| judge(figures, figure);
    figures.figures.iter().filter_map(judge).collect()
}

fn judge(figures: &Figures, figure: &QuotedFigure) -> Option<Finding> {
    let load = offered(figure)?;
    let share = load.reached / load.offered;
    let table = table_of(figures, figure);
    let requests = table.and_then(|t| t.count).or(figure.count);
    // Arrivals at random moments: the number of them varies by its root.
    let chance = requests.map_or(0.0, |requests| 3.0 / requests.max(1.0).sqrt());
    let room = ABOVE.max(chance);
    let quotes_latency = table.is_some()
        || figure.achieved_rate.is_some()
        || figure.latency_p50_s.is_some()
        || figure.latency_mean_s.is_some();
    let (rule, why, advice) = if share > 1.0 + room {
        (
            "above-offered",
            "More cannot arrive than was sent: the two were counted over different times, or of \
             different things.",
            "Count both from the first request to the last, and print the times.",
        )
    } else if share < 1.0 - room && quotes_latency {
        (
            "overload",
            "Requests that were not sent have no latency, and those that were waited in a queue \
             that grew as long as the test ran.",
            "Quote latency at a rate that is reached, and the highest such rate beside it.",
        )
    } else {
        return None;
    };
    let seen = format!(
        "{} achieved of {} offered, {}",
        quantity(load.reached, load.unit),
        quantity(load.offered, load.unit),
        share_text(share)
    );
    Some(Finding::new(
        rule,
        Severity::Error,
        &figure.id,
        seen,
        why,
        advice,
    ))
}
