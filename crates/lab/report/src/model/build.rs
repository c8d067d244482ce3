//! Makes a report from a run and its samples.

use std::collections::BTreeMap;

use dyno_record::{Arm, CasePlan, Outcome, Run, Sample, StoredRun};

use super::OURS;
use super::chart::series_of;
use super::figure::{Figure, Ratio, figures_of_system, stored_limit};
use super::figures::figures_of;
use super::pairing::{band_of, ratio_to};
use super::report::{CaseReport, Report, Trouble};
use super::table::fill;
use super::why::cause_of;
use super::{beside, flame, latencies, roofline, target, variants, why};
use crate::lint::{Finding, Severity, lint};

/// Computes everything that a report of this run says. The same run gives the same report: the
/// bootstrap draws from the plan's seed.
pub fn build(run: &Run, samples: &[Sample]) -> Report {
    let mut report = without_verdicts(run, samples);
    // The linter reads the figures before any verdict is made, because none may rest on a figure
    // that it calls an error.
    report.findings = findings_of(&report, samples);
    add_ratios(&mut report);
    // These hold figures against each other and against limits, so all figures have to be there.
    let held_against: Vec<_> = report
        .cases
        .iter()
        .map(|case| {
            let plan = &case.plan;
            let cause = cause_of(&report, plan);
            let target = target::outcome_of(&report, plan);
            (cause, target, roofline::for_case(&report, plan))
        })
        .collect();
    for (case, (cause, target, roofline)) in report.cases.iter_mut().zip(held_against) {
        case.cause = cause;
        case.target = target;
        case.roofline = roofline;
    }
    report.tables = run
        .plan
        .tables
        .iter()
        .map(|table| fill(table, &report, samples))
        .collect();
    // This table is not one of the plan. It comes last, so that the tables before it keep the
    // positions of their plans, which the views pair them with.
    report.tables.extend(variants::table(&report));
    report.tables.extend(beside::table(&report, samples));
    report.tables.extend(target::table(&report));
    report.tables.extend(why::table(&report));
    // The linter runs a second time, because the verdicts are claims that it judges as well. What
    // it says of the figures stays as it was, since no rule on a figure reads a claim.
    report.findings = findings_of(&report, samples);
    report
}

/// The report with its figures, and with nothing that is concluded from them.
fn without_verdicts(run: &Run, samples: &[Sample]) -> Report {
    let cases = run.plan.cases.iter();
    Report {
        run: run.clone(),
        figures: cases
            .clone()
            .flat_map(|case| case_figures(run, case, samples))
            .collect(),
        findings: Vec::new(),
        tables: Vec::new(),
        cases: cases.map(|case| case_report(run, case, samples)).collect(),
        troubles: samples.iter().filter_map(trouble).collect(),
        samples: samples.to_vec(),
        warnings: strays(run, samples),
        withdrawn: None,
    }
}

/// Figures that are missing, then what the linter says of those that are there.
fn findings_of(report: &Report, samples: &[Sample]) -> Vec<Finding> {
    let mut findings = without_result(report);
    findings.extend(lint(&figures_of(report, samples)));
    findings
}

/// What the linter says of the figures of a run, as [`build`] sees it before any verdict is made.
pub(crate) fn findings(stored: &StoredRun) -> Vec<Finding> {
    findings_of(
        &without_verdicts(&stored.run, &stored.samples),
        &stored.samples,
    )
}

/// Does as [`build`], and adds the warnings that reading the record gave, and its withdrawal.
pub fn build_stored(stored: &StoredRun) -> Report {
    let mut report = build(&stored.run, &stored.samples);
    for case in &mut report.cases {
        case.latencies = latencies::for_case(stored, &case.plan);
        case.flames = flame::for_case(stored, &case.plan);
    }
    let warnings = stored.warnings.iter().map(ToString::to_string);
    report.warnings.extend(warnings);
    report.withdrawn = stored.withdrawn.clone();
    report
}

/// A figure that is missing cannot be linted, so its absence is a finding of its own.
fn without_result(report: &Report) -> Vec<Finding> {
    let places = report.cases.iter().flat_map(|case| {
        let plan = &case.plan;
        plan.compared().map(move |system| (plan, system))
    });
    places
        .filter(|(plan, system)| report.figure(&plan.name, system, &plan.metric).is_none())
        .filter_map(|(plan, system)| {
            let times = report.trouble_count(&plan.name, system);
            // Without a failure the system was not run, which other parts of the report say.
            (times > 0).then(|| Finding {
                rule: "no-result",
                severity: Severity::Error,
                subject: format!("{}/{system}", plan.name),
                seen: format!("all {times} invocations failed or hung"),
                why: "Nothing is known about it; it is not slow, and not fast.".to_owned(),
                advice: "Read the reasons below, mend the cause, and run again.".to_owned(),
            })
        })
        .collect()
}

fn case_figures(run: &Run, case: &CasePlan, samples: &[Sample]) -> Vec<Figure> {
    case.systems
        .iter()
        .flat_map(|system| figures_of_system(run, case, system, samples))
        .collect()
}

fn add_ratios(report: &mut Report) {
    let known: &Report = report;
    let figures = known.figures.iter();
    let ratios: Vec<_> = figures.map(|figure| ratios_of(known, figure)).collect();
    for (figure, ratios) in report.figures.iter_mut().zip(ratios) {
        figure.ratio_to = ratios;
    }
}

/// The ratios of a figure of ours to each other system of its case; empty for the figure of another
/// system. Every metric has a ratio of its own, judged by the noise of that metric: a band of the
/// throughput says nothing of the memory.
fn ratios_of(report: &Report, figure: &Figure) -> BTreeMap<String, Ratio> {
    let case = report.cases.iter().find(|c| c.plan.name == figure.case);
    let Some(case) = case.filter(|_| figure.system == OURS) else {
        return BTreeMap::new();
    };
    let peers = case.plan.compared().filter(|name| *name != OURS);
    peers
        .filter_map(|peer| {
            let ratio = ratio_to(report, &case.plan, &figure.metric, peer)?;
            Some((peer.clone(), ratio))
        })
        .collect()
}

fn case_report(run: &Run, case: &CasePlan, samples: &[Sample]) -> CaseReport {
    CaseReport {
        plan: case.clone(),
        limit: stored_limit(run, case).cloned(),
        band: band_of(case, samples, &case.metric),
        series: series_of(run, case, samples),
        latencies: Vec::new(),
        flames: Vec::new(),
        roofline: None,
        cause: None,
        target: None,
    }
}

fn trouble(sample: &Sample) -> Option<Trouble> {
    let (kind, reason) = match &sample.outcome {
        Outcome::Done => return None,
        Outcome::Failed(reason) => ("failed", reason),
        Outcome::Hung(reason) => ("hung", reason),
    };
    Some(Trouble {
        case: sample.case.clone(),
        system: sample.system.clone(),
        block: sample.block,
        kind,
        reason: match sample.arm {
            Arm::Main | Arm::Control => reason.clone(),
            Arm::Beside => format!("beside the load: {reason}"),
        },
    })
}

/// Samples that the plan does not know are in no figure, so they are named.
fn strays(run: &Run, samples: &[Sample]) -> Vec<String> {
    let planned = |s: &&Sample| {
        let mut cases = run.plan.cases.iter();
        cases.any(|case| case.name == s.case && case.systems.contains(&s.system))
    };
    let stray = samples.iter().filter(|s| !planned(s));
    let mut names: Vec<String> = stray
        .map(|s| {
            format!(
                "samples of {} on {}: not in the plan, so in no figure",
                s.case, s.system
            )
        })
        .collect();
    names.sort();
    names.dedup();
    names
}
