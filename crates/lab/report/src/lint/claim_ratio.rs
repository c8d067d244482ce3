//! A claimed ratio is that of its two figures, and lies inside its interval.

use dyno_record::{Claim, Figures};

use super::{Finding, Severity, off_by, pair, ratio};
use crate::units::{ratio_range, ratio_text};

/// Two significant digits lose less than this.
const ROUNDED: f64 = 0.04;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .claims
        .iter()
        .flat_map(|claim| {
            let computed = pair(figures, claim).and_then(|(winner, loser)| ratio(winner, loser));
            let stated = computed.and_then(|ratio| other_ratio(claim, ratio));
            let interval = computed.and_then(|ratio| outside_interval(claim, ratio));
            stated.into_iter().chain(interval)
        })
        .collect()
}

fn other_ratio(claim: &Claim, computed: f64) -> Option<Finding> {
    let stated = claim.ratio?;
    (off_by(stated, computed) > ROUNDED).then(|| {
        Finding::new(
            "claim-ratio",
            Severity::Error,
            &claim.text,
            format!(
                "{} is claimed, the two figures make {}",
                ratio_text(stated),
                ratio_text(computed)
            ),
            "The sentence is what readers remember, and it is not what was measured.",
            "Compute the ratio from the figures that stand beside it.",
        )
    })
}

fn outside_interval(claim: &Claim, computed: f64) -> Option<Finding> {
    let (low, high) = claim.ratio_low.zip(claim.ratio_high)?;
    let ends = ratio_range(low, high);
    // Ends are printed with as few digits as the ratio, so each has the same room.
    let room = computed * ROUNDED;
    let seen = if low > high {
        format!("the interval goes from {ends}, downwards")
    } else if computed < low - room || computed > high + room {
        let found = ratio_text(computed);
        format!("the two figures make {found}, outside the interval {ends}")
    } else {
        return None;
    };
    Some(Finding::new(
        "ratio-interval",
        Severity::Error,
        &claim.text,
        seen,
        "Ratio and interval are of different samples, or one of them is upside down.",
        "Compute both from the same pairs of samples, winner over loser.",
    ))
}
