//! What is claimed of two figures is claimed of one thing under one condition, unless the words say
//! what differs.

use dyno_record::{Claim, Figures, QuotedFigure};

use super::{Finding, Severity, pair};

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    figures
        .claims
        .iter()
        .filter_map(|claim| {
            let (winner, loser) = pair(figures, claim)?;
            judge(claim, winner, loser)
        })
        .collect()
}

fn judge(claim: &Claim, winner: &QuotedFigure, loser: &QuotedFigure) -> Option<Finding> {
    let marked = winner.marked && loser.marked;
    let says = |what: &str| claim.across.iter().any(|word| word == what);
    // Two systems are two programs; of one system, two versions are.
    let same_system = winner.system == loser.system;
    let differences = [
        ("metric", Some(&winner.metric), Some(&loser.metric), true),
        (
            "machine",
            winner.machine.as_ref(),
            loser.machine.as_ref(),
            !marked,
        ),
        (
            "program",
            winner.program.as_ref(),
            loser.program.as_ref(),
            same_system && !marked,
        ),
        ("case", Some(&winner.case), Some(&loser.case), true),
    ];
    // One difference is enough to make the claim doubtful. The first that the words do not admit is
    // named, the gravest standing first.
    let (what, a, b, _) = differences
        .into_iter()
        .find(|(what, a, b, matters)| *matters && a != b && !says(what))?;
    let name = |value: Option<&String>| value.map_or("one that is not named", |v| v).to_owned();
    // A case may differ in just what is studied, so that alone makes no claim impossible.
    let severity = match what {
        "case" => Severity::Warning,
        _ => Severity::Error,
    };
    Some(Finding::new(
        "claim-across",
        severity,
        &claim.text,
        format!("the {what} differs: {} against {}", name(a), name(b)),
        "The difference may be that of the conditions and not of what is compared.",
        "Measure both under one condition, or say in the claim what differs.",
    ))
}
