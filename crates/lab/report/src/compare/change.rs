//! One figure in all runs.

use std::collections::BTreeSet;

use dyno_record::{Better, CasePlan, Role, StoredRun};
use dyno_stats::{Verdict, compare_runs, holm};
use serde::Serialize;

use super::drift::{band_between, is_unchanged, values};
use super::{Answer, CompareRules, NotCompared};
use crate::lint::Finding;
use crate::model::{NOT_JUDGED, OURS, better_of, doubt, error_of, findings};

/// Beyond this an adjusted p-value names no winner.
const ALPHA: f64 = 0.05;

/// A figure in the older and a newer run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Name of the case, which both runs have.
    pub case: String,
    /// `dyno`, a variant of it, or a peer.
    pub system: String,
    /// Name of the metric that ranks the case.
    pub metric: String,
    /// Unit of `base` and `new`.
    pub unit: String,
    /// The direction that `ratio` is turned by.
    pub better: Better,
    /// Samples of the run that has fewer.
    pub n: usize,
    /// Median of the older run.
    pub base: f64,
    /// Median of the newer run.
    pub new: f64,
    /// New against base; above 1 means that it became better.
    pub ratio: f64,
    /// Lower end of the 95% interval, which pairs no samples of the two runs.
    pub low: f64,
    /// Upper end of the same interval.
    pub high: f64,
    /// The band of what did not change between the runs, as a share, where there is such a thing.
    pub band: Option<f64>,
    /// Probability of such a difference, or a larger one, if the systems are equal. For our figures
    /// it is adjusted for the number of cases (Holm).
    pub p_value: f64,
    /// `faster`, `slower`, `no difference shown`, `unstable`, `not steady` or `not judged`; of a
    /// system that is the same in both runs `same program`.
    pub verdict: &'static str,
    /// What the verdict rests on, in half a sentence.
    pub reason: String,
    /// What this figure alone says.
    pub answer: Answer,
}

/// The verdict on a system that did not change.
pub(super) const SAME_PROGRAM: &str = "same program";

/// The older run and one of the newer, with what the linter says of each.
struct Pair<'a> {
    base: &'a StoredRun,
    new: &'a StoredRun,
    all_new: &'a [&'a StoredRun],
    base_findings: &'a [Finding],
    new_findings: Vec<Finding>,
}

/// The changes, and the cases that cannot be compared with the reason.
pub(super) fn changes(
    base: &StoredRun,
    new: &[&StoredRun],
    rules: &CompareRules,
) -> (Vec<Change>, Vec<NotCompared>) {
    let mut left_out = Vec::new();
    let mut by_run = Vec::new();
    let base_findings = findings(base);
    for one in new {
        let pair = Pair {
            base,
            new: one,
            all_new: new,
            base_findings: &base_findings,
            new_findings: findings(one),
        };
        let mut changes = pair.changes(&mut left_out);
        // The correction is for the cases of one run. Over all runs together it would grow with
        // each run that was made to confirm the first, and hide what they confirm.
        correct(&mut changes, rules);
        by_run.push(changes);
    }
    let names: BTreeSet<&str> = new
        .iter()
        .flat_map(|new| &new.run.plan.cases)
        .map(|case| case.name.as_str())
        .collect();
    let gone = base.run.plan.cases.iter();
    let gone = gone.filter(|case| !names.contains(case.name.as_str()));
    left_out.extend(gone.map(|case| without(case, None, "only in the older run".to_owned())));
    let mut seen = BTreeSet::new();
    left_out.retain(|left| seen.insert(left.clone()));
    (recurring(by_run), left_out)
}

fn without(case: &CasePlan, system: Option<&str>, reason: String) -> NotCompared {
    NotCompared {
        case: case.name.clone(),
        system: system.map(str::to_owned),
        reason,
    }
}

/// Why the older run has no case that asked for the same work.
fn differs(base: &StoredRun, case: &CasePlan) -> Option<String> {
    let mut older = base.run.plan.cases.iter();
    let Some(older) = older.find(|c| c.name == case.name) else {
        return Some("only in the newer run".to_owned());
    };
    let (metric, older_metric) = ((&case.metric, &case.unit), (&older.metric, &older.unit));
    let differs = [
        ("workload", older.workload != case.workload),
        ("parameters", older.params != case.params),
        ("metric", older_metric != metric),
        (
            "expected count",
            older.expected_count != case.expected_count,
        ),
    ];
    let (what, _) = differs.iter().find(|(_, differs)| *differs)?;
    Some(format!("its {what} changed"))
}

/// Why a system was asked for other work in a case that both runs have: a variant has parameters of
/// its own, which those of the case do not show.
fn differs_on(base: &StoredRun, case: &CasePlan, system: &str) -> Option<String> {
    let mut older = base.run.plan.cases.iter();
    let older = older.find(|c| c.name == case.name)?;
    // A system that the older run did not have has no figure there, which is told of as such.
    let is_known = older.systems.iter().any(|name| name == system);
    let differs = older.variants.get(system) != case.variants.get(system);
    (is_known && differs).then(|| "its parameters changed".to_owned())
}

/// The cases that both runs have, of which the older one has a figure of ours and a newer one has
/// none: the program may no longer be able to do them, and what has no figure is in no change.
pub(super) fn lost(base: &StoredRun, new: &[&StoredRun]) -> Vec<String> {
    let is_lost = |new: &StoredRun, case: &CasePlan| {
        differs(base, case).is_none()
            && !values(base, case, OURS).is_empty()
            && values(new, case, OURS).is_empty()
    };
    let of_run = |new: &&StoredRun| {
        let cases = new.run.plan.cases.iter();
        let lost = cases.filter(|case| is_lost(new, case));
        lost.map(|case| case.name.clone()).collect::<Vec<_>>()
    };
    let mut lost: Vec<String> = new.iter().flat_map(of_run).collect();
    // Several newer runs may have lost the same case.
    let mut seen = BTreeSet::new();
    lost.retain(|case| seen.insert(case.clone()));
    lost
}

impl Pair<'_> {
    fn changes(&self, left_out: &mut Vec<NotCompared>) -> Vec<Change> {
        let mut changes = Vec::new();
        for case in &self.new.run.plan.cases {
            // A case whose parameters changed did other work, so its ratio would be a difference of
            // the work. It is named and not compared.
            if let Some(reason) = differs(self.base, case) {
                left_out.push(without(case, None, reason));
                continue;
            }
            for system in &case.systems {
                let change = match differs_on(self.base, case, system) {
                    Some(reason) => Err(reason),
                    None => self.change(case, system),
                };
                match change {
                    Ok(change) => changes.push(change),
                    Err(reason) => left_out.push(without(case, Some(system), reason)),
                }
            }
        }
        changes
    }

    fn change(&self, case: &CasePlan, system: &str) -> Result<Change, String> {
        let (base, new) = (self.base, self.new);
        let (before, after) = (values(base, case, system), values(new, case, system));
        let median = |values: &[f64], which: &str| {
            let median = dyno_stats::median(values);
            median.map_err(|_| format!("no sample of the {which} run ended well"))
        };
        let (base_median, new_median) = (median(&before, "older")?, median(&after, "newer")?);
        let band = band_between(base, new, self.all_new, case);
        let seen = compare_runs(&after, &before, better_of(case.better), band.as_ref())
            .map_err(|error| error.to_string())?;
        let undecided = self.undecided(case, system, band.is_some());
        let (verdict, reason) = undecided.unwrap_or((seen.verdict.as_str(), seen.reason));
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
            band: band.map(|band| band.share()),
            p_value: seen.p_value,
            verdict,
            reason,
            answer: Answer::NoRegression,
        })
    }

    /// Why the samples decide nothing here, whatever they show, with the verdict that says so.
    fn undecided(
        &self,
        case: &CasePlan,
        system: &str,
        has_band: bool,
    ) -> Option<(&'static str, String)> {
        let (base, new) = (self.base, self.new);
        let same = match case.role(system) {
            Role::Peer => is_unchanged(base, new, case, system),
            _ => base.run.program.hash == new.run.program.hash,
        };
        // The order matters. The same program on both sides cannot have changed, whatever its
        // samples show. A figure that cannot be what it is said to be, and an unsteady rate, make
        // the comparison meaningless even where the ranks call a winner.
        if same {
            let reason = "so the difference is what the machine did between the runs";
            return Some((SAME_PROGRAM, reason.to_owned()));
        }
        let by_run = [
            ("older", self.base_findings),
            ("newer", self.new_findings.as_slice()),
        ];
        let error = by_run.into_iter().find_map(|(which, findings)| {
            let error = error_of(findings, &case.name, system)?;
            Some(format!("in the {which} run, {error}"))
        });
        if let Some(reason) = error {
            return Some((NOT_JUDGED, reason));
        }
        let sides = [(&base.samples[..], system), (&new.samples[..], system)];
        if let Some(found) = doubt(case, sides) {
            return Some((found.verdict, found.reason));
        }
        let reason = "nothing that did not change ran in both runs, so the drift between them is \
                      not known";
        (!has_band).then(|| (NOT_JUDGED, reason.to_owned()))
    }
}

/// Takes back what the number of cases explains (Holm over our figures), then says what each figure
/// means for the answer.
fn correct(changes: &mut [Change], rules: &CompareRules) {
    // Peers are not candidates for a regression of ours, so they do not count among the comparisons
    // that may err by luck.
    let ours = |change: &&mut Change| change.system == OURS;
    let p_values: Vec<f64> = changes.iter_mut().filter(ours).map(|c| c.p_value).collect();
    for (change, adjusted) in changes.iter_mut().filter(ours).zip(holm(&p_values)) {
        change.p_value = adjusted;
        for verdict in [Verdict::Faster, Verdict::Slower] {
            let corrected = verdict.corrected(adjusted, ALPHA);
            if change.verdict == verdict.as_str() && corrected != verdict {
                change.verdict = corrected.as_str();
                change.reason = format!("one of {} cases may do so by luck", p_values.len());
            }
        }
        change.answer = answer(change, rules);
    }
}

fn answer(change: &Change, rules: &CompareRules) -> Answer {
    let accepted = 1.0 - rules.max_slowdown.unwrap_or(0.0);
    match change.verdict {
        "slower" if change.ratio < accepted => Answer::Regression,
        // With a limit on the slowdown the burden of proof turns round: an interval that reaches
        // beyond the limit is not enough evidence, even if the verdict is "no difference shown".
        "faster" | "slower" | "no difference shown" | SAME_PROGRAM => match rules.max_slowdown {
            Some(_) if change.low < accepted && change.verdict != SAME_PROGRAM => {
                Answer::NotEnoughEvidence
            }
            _ => Answer::NoRegression,
        },
        _ => Answer::NotEnoughEvidence,
    }
}

/// One change for each figure out of those of all newer runs: the one that speaks least for a
/// regression. A regression in a single run is not enough evidence.
fn recurring(by_run: Vec<Vec<Change>>) -> Vec<Change> {
    let runs = by_run.len();
    let mut figures: Vec<Vec<Change>> = Vec::new();
    for change in by_run.into_iter().flatten() {
        let same = |f: &&mut Vec<Change>| f[0].case == change.case && f[0].system == change.system;
        match figures.iter_mut().find(same) {
            Some(figure) => figure.push(change),
            None => figures.push(vec![change]),
        }
    }
    figures
        .into_iter()
        .filter_map(|figure| least(figure, runs))
        .collect()
}

fn least(figure: Vec<Change>, runs: usize) -> Option<Change> {
    let slower = figure
        .iter()
        .filter(|c| c.answer == Answer::Regression)
        .count();
    // The answer comes first. Of two runs with the same answer the one with the better ratio is
    // kept, because the newer program deserves the run that speaks least against it.
    let weight = |a: &Change, b: &Change| a.answer.cmp(&b.answer).then(b.ratio.total_cmp(&a.ratio));
    let mut change = figure.into_iter().min_by(weight)?;
    if slower > 0 && runs > 1 {
        let seen = format!("; slower in {slower} of {runs} newer runs");
        change.reason.push_str(&seen);
    }
    // A single newer run has one state of the machine (its memory layout, its neighbours), which
    // can slow a program down evenly in all blocks.
    if change.answer == Answer::Regression && slower < 2 {
        change.answer = Answer::NotEnoughEvidence;
        change
            .reason
            .push_str("; it must recur in a second newer run");
    }
    Some(change)
}
