//! A winner beats the other by more than the noise.

use dyno_record::{Better, Claim, Figures, QuotedFigure};

use super::{Finding, Severity};
use crate::units::{quantity, ratio_range};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .claims
        .iter()
        .filter_map(|claim| {
            let find = |id: &String| figures.figures.iter().find(|figure| &figure.id == id);
            let reason = doubt(claim, find(&claim.winner)?, find(&claim.loser)?)?;
            Some(Finding {
                rule: "winner-in-noise",
                severity: Severity::Warning,
                subject: claim.text.clone(),
                seen: reason,
                why: "The next run may name the other.".to_owned(),
                advice: "Say that no difference is shown, or repeat until one is.".to_owned(),
            })
        })
        .collect()
}

/// Why the claim is not shown; nothing when it is.
fn doubt(claim: &Claim, winner: &QuotedFigure, loser: &QuotedFigure) -> Option<String> {
    let ratio = match winner.better {
        Better::Higher => winner.value / loser.value,
        Better::Lower => loser.value / winner.value,
    };
    let gap = format!(
        "{} against {}, {}",
        quantity(winner.value, &winner.unit),
        quantity(loser.value, &loser.unit),
        percent(ratio)
    );
    if ratio <= 1.0 {
        return Some(format!("{gap}: the winner is not ahead"));
    }
    if let Some((low, high)) = claim.ratio_low.zip(claim.ratio_high) {
        return (low <= 1.0).then(|| {
            let ends = ratio_range(low, high);
            format!("{gap}: the interval of the ratio, {ends}, holds 1")
        });
    }
    if let Some(band) = claim.noise_band {
        return (ratio <= 1.0 + band)
            .then(|| format!("{gap}: inside the noise of {:.1}%", band * 100.0));
    }
    match (spread(winner), spread(loser)) {
        (Some(a), Some(b)) => {
            (a.0 <= b.1 && b.0 <= a.1).then(|| format!("{gap}: the spreads of the two overlap"))
        }
        // Without a spread on both sides even a large gap is a hope; a small one is nothing.
        _ => (ratio < 1.10).then(|| format!("{gap}: no spread is known on both sides")),
    }
}

fn spread(figure: &QuotedFigure) -> Option<(f64, f64)> {
    figure.low.zip(figure.high)
}

fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent.abs() < 10.0 {
        true => format!("{percent:+.1}%"),
        false => format!("{percent:+.0}%"),
    }
}
