//! What bounds a case, as far as the experiments of `--why` prove it.

use dyno_record::{CasePlan, Experiment, Gives, Outcome, Role, Sample};
use dyno_stats::Verdict;
use serde::Serialize;

use super::cell::{Cell, FilledTable, figure_cell};
use super::pairing::{band_of, ratio_between};
use super::report::Report;
use super::{OURS, Ratio};
use crate::units::{counted, ratio_range, ratio_text, share_text};

/// Heading of the table of experiments.
pub(crate) const TITLE: &str = "What bounds each figure";

/// What the experiments of a case come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The resource whose change moves the figure most, beyond the noise and in the direction that
    /// a bottleneck would move it; absent when none does.
    pub resource: Option<String>,
    /// The answer in a sentence without a full stop.
    pub text: String,
    /// Every change that was tried, in the order of the plan.
    pub trials: Vec<Trial>,
    /// Resources that were not tried, with the reason.
    pub untried: Vec<(String, String)>,
}

/// One change, and what it did to the figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// The name of the system that ran with the change.
    pub system: String,
    /// The resource that was changed.
    pub resource: String,
    /// What was changed, for people.
    pub change: String,
    /// The figure with the change against the figure without; above 1 is better with it. Absent
    /// when no block has both.
    pub ratio: Option<Ratio>,
    /// Whether the figure moves beyond the noise as it does where the resource is the bottleneck.
    pub proves: bool,
    /// What is known, in a few words: `it is the cause`, `does not move the figure`, or why not.
    pub says: String,
}

/// What the experiments of a case prove; `None` when the record has none for it.
pub(crate) fn cause_of(report: &Report, case: &CasePlan) -> Option<Cause> {
    if case.experiments.is_empty() && case.untried.is_empty() {
        return None;
    }
    let systems = case.systems.iter();
    let trials: Vec<Trial> = systems
        .filter(|system| case.role(system) == Role::Experiment)
        .filter_map(|system| Some((system, case.experiments.get(system)?)))
        .map(|(system, experiment)| trial(report, case, system, experiment))
        .collect();
    let (resource, text) = answer(case, &report.samples, &trials);
    Some(Cause {
        resource,
        text,
        trials,
        untried: case.untried.clone().into_iter().collect(),
    })
}

fn trial(report: &Report, case: &CasePlan, system: &str, experiment: &Experiment) -> Trial {
    let ratio = ratio_between(report, case, &case.metric, (system, OURS));
    let expected = match experiment.gives {
        Gives::More => Verdict::Faster.as_str(),
        Gives::Less => Verdict::Slower.as_str(),
    };
    let verdict = ratio.as_ref().map(|ratio| ratio.verdict);
    let moved = [Verdict::Faster, Verdict::Slower].map(Verdict::as_str);
    let says = match &ratio {
        None => failure(case, &report.samples, system),
        Some(_) if verdict == Some(expected) => "it bounds the figure".to_owned(),
        Some(ratio) if moved.contains(&ratio.verdict) => match experiment.gives {
            Gives::More => "the figure gets worse with more of it".to_owned(),
            Gives::Less => "the figure gets better with less of it".to_owned(),
        },
        Some(ratio) if ratio.is_open() => format!("{}: {}", ratio.verdict, ratio.reason),
        Some(_) => "does not move the figure".to_owned(),
    };
    Trial {
        system: system.to_owned(),
        resource: experiment.resource.clone(),
        change: experiment.change.clone(),
        proves: verdict == Some(expected),
        ratio,
        says,
    }
}

/// Why a change has no figure.
fn failure(case: &CasePlan, samples: &[Sample], system: &str) -> String {
    let mut own = samples
        .iter()
        .filter(|s| s.case == case.name && s.system == system);
    let reason = own.find_map(|sample| match &sample.outcome {
        Outcome::Done => None,
        Outcome::Failed(reason) | Outcome::Hung(reason) => Some(reason.as_str()),
    });
    match reason {
        Some(reason) => format!("could not be tried: {reason}"),
        None => "was not run".to_owned(),
    }
}

/// The resource that is proven, and the answer in a sentence.
fn answer(case: &CasePlan, samples: &[Sample], trials: &[Trial]) -> (Option<String>, String) {
    // How far a figure moves, whichever way: half is as far from 1 as two is.
    let distance = |trial: &Trial| trial.ratio.as_ref().map_or(0.0, |r| r.ratio.ln().abs());
    let mut proven: Vec<&Trial> = trials.iter().filter(|trial| trial.proves).collect();
    proven.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    if let Some(strongest) = proven.first() {
        let effects: Vec<String> = proven.iter().map(|trial| effect(trial)).collect();
        let resource = strongest.resource.clone();
        let text = format!("{resource}: {}", effects.join("; "));
        return (Some(resource), text);
    }
    let judged: Vec<&Trial> = trials
        .iter()
        .filter(|trial| trial.ratio.as_ref().is_some_and(|ratio| !ratio.is_open()))
        .collect();
    let text = match (judged.len(), trials.first()) {
        (_, None) => "unproven: nothing about the case could be changed".to_owned(),
        (0, Some(first)) => format!(
            "unproven: no change was judged ({}: {})",
            first.system, first.says
        ),
        (many, _) => {
            let band = band_of(case, samples, &case.metric);
            let band = band.map_or(0.0, |band| band.share());
            let changes = counted(many as u64, "change");
            let against = judged
                .iter()
                .filter(|trial| trial.says.starts_with("the figure"));
            let against: Vec<String> = against.map(|trial| effect(trial)).collect();
            let against = if against.is_empty() {
                String::new()
            } else {
                format!(" as a bottleneck would ({})", against.join("; "))
            };
            format!(
                "unproven: none of the {changes} moved the figure beyond ±{}{against}",
                share_text(band)
            )
        }
    };
    (None, text)
}

/// What a change did, in a clause.
fn effect(trial: &Trial) -> String {
    let Some(ratio) = &trial.ratio else {
        return trial.change.clone();
    };
    let range = ratio_range(ratio.low, ratio.high);
    format!(
        "{} gives {} ({range})",
        trial.change,
        ratio_text(ratio.ratio)
    )
}

/// A row for each change of each case; `None` when the record has no experiments.
pub(crate) fn table(report: &Report) -> Option<FilledTable> {
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for case in &report.cases {
        let Some(cause) = &case.cause else {
            continue;
        };
        let name = &case.plan.name;
        rows.extend(
            cause
                .trials
                .iter()
                .map(|trial| row(report, case.plan.metric.as_str(), name, trial)),
        );
        notes.push(format!("{name}: {}.", cause.text));
        let untried: Vec<String> = cause
            .untried
            .iter()
            .map(|(resource, reason)| format!("{resource} ({reason})"))
            .collect();
        if !untried.is_empty() {
            notes.push(format!("{name}, not tried: {}.", untried.join("; ")));
        }
    }
    if notes.is_empty() {
        return None;
    }
    notes.push(
        "Each change ran in the blocks of dyno unchanged and its control arm. With more of a \
         resource, or with no need for it, a figure that it bounds gets better; with less of it, \
         worse. Above 1 the figure is better with the change."
            .to_owned(),
    );
    Some(FilledTable {
        title: TITLE.to_owned(),
        columns: [
            "case",
            "resource",
            "change",
            "figure",
            "changed ÷ unchanged",
            "what it shows",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        notes,
    })
}

fn row(report: &Report, metric: &str, case: &str, trial: &Trial) -> Vec<Cell> {
    let figure = report.figure(case, &trial.system, metric);
    vec![
        Cell::text(case),
        Cell::text(&trial.resource),
        Cell::text(&trial.change),
        figure.map_or_else(|| Cell::none("no invocation ended well"), figure_cell),
        match &trial.ratio {
            Some(ratio) => Cell::number(
                format!(
                    "{} ({})",
                    ratio_text(ratio.ratio),
                    ratio_range(ratio.low, ratio.high)
                ),
                format!("over {}", counted(ratio.blocks as u64, "block")),
            )
            .with_value(ratio.ratio, "x"),
            None => Cell::none("no block has both"),
        },
        Cell::text(&trial.says),
    ]
}
