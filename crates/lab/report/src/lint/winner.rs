//! A winner beats the other by more than the noise.

use dyno_record::{Claim, Figures, QuotedFigure};

use super::short_cell::is_short;
use super::spread::SAMPLES_MIN;
use super::unit::convert;
use super::{Finding, Severity, pair, ratio};
use crate::units::{quantity, ratio_range};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .claims
        .iter()
        .filter_map(|claim| {
            let (winner, loser) = pair(figures, claim)?;
            let (severity, seen) = doubt(figures, claim, winner, loser)?;
            Some(Finding::new(
                "winner-in-noise",
                severity,
                &claim.text,
                seen,
                "The next run may name the other.",
                "Say that no difference is shown, or repeat until one is.",
            ))
        })
        .collect()
}

/// Why the claim is not shown; nothing when it is.
fn doubt(
    figures: &Figures,
    claim: &Claim,
    winner: &QuotedFigure,
    loser: &QuotedFigure,
) -> Option<(Severity, String)> {
    let ratio = ratio(winner, loser)?;
    let gap = format!(
        "{} against {}, {}",
        quantity(winner.value, &winner.unit),
        quantity(loser.value, &loser.unit),
        percent(ratio)
    );
    if ratio <= 1.0 {
        return Some((Severity::Error, format!("{gap}: the winner is not ahead")));
    }
    let warning = |reason: String| Some((Severity::Warning, format!("{gap}: {reason}")));
    // From here on the winner is ahead. The evidence is asked for from the strongest to the
    // weakest: an interval of the ratio, a noise band, then the samples and spreads of the two
    // figures.
    if let Some((low, high)) = claim.ratio_low.zip(claim.ratio_high)
        && low <= 1.0
    {
        let ends = ratio_range(low, high);
        return warning(format!("the interval of the ratio, {ends}, holds 1"));
    }
    if let Some(band) = claim.noise_band.filter(|band| ratio <= 1.0 + band) {
        return warning(format!("inside the noise of {:.1}%", band * 100.0));
    }
    if is_short(figures, winner) || is_short(figures, loser) {
        return warning("the samples are too short for the clock".to_owned());
    }
    let samples = [winner.n, loser.n].into_iter().flatten().min();
    if let Some(n) = samples.filter(|n| *n < SAMPLES_MIN) {
        return warning(format!("it rests on n = {n}"));
    }
    // A paired interval or a band has already decided. Spreads that overlap do not speak against
    // it: the two were measured in the same blocks, so they move together.
    if claim.ratio_low.is_some() || claim.noise_band.is_some() {
        return None;
    }
    match (spread(winner, winner), spread(loser, winner)) {
        (Some(a), Some(b)) if a.0 <= b.1 && b.0 <= a.1 => {
            warning("the spreads of the two overlap".to_owned())
        }
        (Some(_), Some(_)) => None,
        // Without a spread on both sides even a large gap is a hope; a small one is nothing.
        _ if ratio < 1.10 => warning("no spread is known on both sides".to_owned()),
        _ => None,
    }
}

/// The spread of a figure in the unit of `like`.
fn spread(figure: &QuotedFigure, like: &QuotedFigure) -> Option<(f64, f64)> {
    let (low, high) = figure.low.zip(figure.high)?;
    let in_unit = |value| convert(value, &figure.unit, &like.unit);
    in_unit(low).zip(in_unit(high))
}

fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 10.0 {
        format!("{percent:+.1}%")
    } else {
        format!("{percent:+.0}%")
    }
}
