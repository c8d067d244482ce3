//! One figure in both runs.

use std::collections::BTreeSet;

use dyno_record::{Arm, Better, CasePlan, Outcome, Sample, StoredRun};
use dyno_stats::{Block, CompareOptions, Verdict};
use serde::Serialize;

use super::{Answer, CompareRules};
use crate::model::{NOT_JUDGED, NOT_STEADY, band_of, better_of, group, obstacle, value_of};

/// A figure in the older and the newer run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The case.
    pub case: String,
    /// The system.
    pub system: String,
    /// The ranking metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Samples compared on each side.
    pub n: usize,
    /// Median of the older run.
    pub base: f64,
    /// Median of the newer run.
    pub new: f64,
    /// New against base; above 1 means that it became better.
    pub ratio: f64,
    /// Lower end of the 95% interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The wider noise band of the two runs, as a share.
    pub band: f64,
    /// `faster`, `slower`, `no difference shown`, `unstable`, `not steady` or `not judged`.
    pub verdict: &'static str,
    /// Why.
    pub reason: String,
    /// What this figure alone says.
    pub answer: Answer,
}

/// The changes, and the cases that cannot be compared with the reason.
pub(super) fn changes(
    base: &StoredRun,
    new: &StoredRun,
    rules: &CompareRules,
) -> (Vec<Change>, Vec<String>) {
    let mut changes = Vec::new();
    let mut left_out = Vec::new();
    for case in &new.run.plan.cases {
        match counterpart(base, case) {
            Err(reason) => left_out.push(format!("{}: {reason}", case.name)),
            Ok(_) => {
                for system in &case.systems {
                    match change(base, new, case, system, rules) {
                        Ok(change) => changes.push(change),
                        Err(reason) => {
                            left_out.push(format!("{} on {system}: {reason}", case.name));
                        }
                    }
                }
            }
        }
    }
    let names: BTreeSet<&str> = new.run.plan.cases.iter().map(|c| &*c.name).collect();
    let gone = base
        .run
        .plan
        .cases
        .iter()
        .filter(|c| !names.contains(&*c.name));
    left_out.extend(gone.map(|case| format!("{}: only in the older run", case.name)));
    (changes, left_out)
}

/// The same case in the older run, when it asked for the same work.
fn counterpart<'a>(base: &'a StoredRun, case: &CasePlan) -> Result<&'a CasePlan, String> {
    let mut older = base.run.plan.cases.iter();
    let older = older
        .find(|c| c.name == case.name)
        .ok_or("only in the newer run")?;
    let differs = [
        ("workload", older.workload != case.workload),
        ("parameters", older.params != case.params),
        (
            "metric",
            older.metric != case.metric || older.unit != case.unit,
        ),
        (
            "expected count",
            older.expected_count != case.expected_count,
        ),
    ];
    match differs.iter().find(|(_, differs)| *differs) {
        Some((what, _)) => Err(format!("its {what} changed")),
        None => Ok(older),
    }
}

fn change(
    base: &StoredRun,
    new: &StoredRun,
    case: &CasePlan,
    system: &str,
    rules: &CompareRules,
) -> Result<Change, String> {
    let before = values(&base.samples, case, system);
    let after = values(&new.samples, case, system);
    let median = |values: &[f64], which: &str| {
        dyno_stats::median(values).map_err(|_| format!("no sample of the {which} run ended well"))
    };
    let (base_median, new_median) = (median(&before, "older")?, median(&after, "newer")?);
    // The runs share no block; the n-th of one meets the n-th of the other.
    let blocks: Vec<Block> = after
        .iter()
        .zip(&before)
        .map(|(a, b)| Block::single(*a, *b))
        .collect();
    let band = band_of(&base.run, case, &base.samples, &case.metric).widest(band_of(
        &new.run,
        case,
        &new.samples,
        &case.metric,
    ));
    let options = CompareOptions {
        better: better_of(case.better),
        seed: new.run.plan.order_seed,
        ..CompareOptions::default()
    };
    let seen = dyno_stats::compare(&blocks, &band, &options).map_err(|e| e.to_string())?;
    let (verdict, reason) = match obstacle(
        case,
        [(&base.samples[..], system), (&new.samples[..], system)],
    ) {
        Some((verdict, reason)) => (verdict, reason),
        None => (seen.verdict.as_str(), seen.reason.clone()),
    };
    let answer = match [NOT_JUDGED, NOT_STEADY].contains(&verdict) {
        true => Answer::NotEnoughEvidence,
        false => answer(&seen, options.blocks_min, rules),
    };
    Ok(Change {
        case: case.name.clone(),
        system: system.to_owned(),
        metric: case.metric.clone(),
        unit: case.unit.clone(),
        better: case.better,
        n: seen.n,
        base: base_median,
        new: new_median,
        ratio: seen.ratio,
        low: seen.interval.low,
        high: seen.interval.high,
        band: band.high - 1.0,
        verdict,
        answer,
        reason,
    })
}

fn values(samples: &[Sample], case: &CasePlan, system: &str) -> Vec<f64> {
    group(samples, &case.name, system, Arm::Main)
        .into_iter()
        .filter(|s| s.outcome == Outcome::Done)
        .filter_map(|s| value_of(s, &case.metric))
        .collect()
}

fn answer(seen: &dyno_stats::Comparison, blocks_min: usize, rules: &CompareRules) -> Answer {
    if seen.n < blocks_min || seen.verdict == Verdict::Unstable {
        return Answer::NotEnoughEvidence;
    }
    let accepted = 1.0 - rules.max_slowdown.unwrap_or(0.0);
    if seen.verdict == Verdict::Slower && seen.ratio < accepted {
        return Answer::Regression;
    }
    match rules.max_slowdown {
        Some(_) if seen.interval.low < accepted => Answer::NotEnoughEvidence,
        _ => Answer::NoRegression,
    }
}
