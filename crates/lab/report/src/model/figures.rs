//! Our own report in the neutral form that the linter reads.

use std::collections::BTreeMap;

use dyno_record::{
    Arm, Better, Ceiling, Claim, Count, Figures, LatencyFigure, Outcome, QuotedFigure, Sample,
};

use super::OURS;
use super::figure::{Figure, best_known, group, one_value};
use super::report::{CaseReport, Report};
use super::steady::NOT_STEADY;
use super::table::deciding_ratio;
use crate::units::in_seconds;

/// The name of the limit that says what reading the clock costs.
const TIMER_LIMIT: &str = "timer-cost";

/// The figures of `report` as the linter wants them; `samples` add durations, facts and answers.
pub fn figures_of(report: &Report, samples: &[Sample]) -> Figures {
    let run = &report.run;
    let timer = run.limits.iter().find(|limit| limit.name == TIMER_LIMIT);
    Figures {
        magic: "dyno-figures".to_owned(),
        version: dyno_record::FIGURES_VERSION,
        title: run.plan.title.clone(),
        source: format!("run of {} at {}", run.plan.suite, run.started_at),
        build: Some(run.program.profile.clone()),
        revision: Some(run.program.git_revision.clone()),
        timer_cost_ns: timer.filter(|limit| limit.unit == "ns").map(|l| l.value),
        figures: report
            .figures
            .iter()
            .filter_map(|figure| quoted(report, figure, samples))
            .collect(),
        limits: run.limits.iter().map(ceiling).collect(),
        claims: report
            .cases
            .iter()
            .flat_map(|c| claims(report, c))
            .collect(),
        counts: report
            .cases
            .iter()
            .flat_map(|c| counts(c, samples))
            .collect(),
        totals: Vec::new(),
        properties: Vec::new(),
        latencies: report
            .cases
            .iter()
            .flat_map(|c| latencies(report, c, samples))
            .collect(),
        codecs: Vec::new(),
    }
}

fn id(case: &str, system: &str, metric: &str) -> String {
    format!("{case}/{system}/{metric}")
}

fn ceiling(limit: &dyno_record::Limit) -> Ceiling {
    let best = match limit.better {
        Better::Higher => limit.high.max(best_known(limit)),
        Better::Lower => limit.low.min(best_known(limit)),
    };
    Ceiling {
        name: limit.name.clone(),
        value: best_known(limit),
        unit: limit.unit.clone(),
        better: limit.better,
        best: Some(best),
        measured: true,
    }
}

/// Only the ranking metric is judged: the rest are recorded beside it and claim nothing.
fn quoted(report: &Report, figure: &Figure, samples: &[Sample]) -> Option<QuotedFigure> {
    let case = &report
        .cases
        .iter()
        .find(|c| c.plan.name == figure.case)?
        .plan;
    if case.metric != figure.metric {
        return None;
    }
    let done: Vec<&Sample> = group(samples, &figure.case, &figure.system, Arm::Main)
        .into_iter()
        .filter(|s| s.outcome == Outcome::Done)
        .collect();
    let fact = |name: &str| one_value(done.iter().filter_map(|s| s.facts.get(name)).map(|s| &**s));
    let seconds = |metric: &str| {
        let found = report.figure(&figure.case, &figure.system, metric)?;
        in_seconds(found.median, &found.unit)
    };
    let counted: Vec<f64> = done
        .iter()
        .filter_map(|s| s.answer.as_ref().map(|answer| answer.count as f64))
        .collect();
    let known = |name: &&String| report.run.limits.iter().any(|limit| &limit.name == *name);
    Some(QuotedFigure {
        id: id(&figure.case, &figure.system, &figure.metric),
        case: figure.case.clone(),
        system: figure.system.clone(),
        metric: figure.metric.clone(),
        unit: figure.unit.clone(),
        better: figure.better,
        value: figure.median,
        n: Some(u32::try_from(figure.n).unwrap_or(u32::MAX)),
        low: figure.low,
        high: figure.high,
        failed: u32::try_from(report.trouble_count(&figure.case, &figure.system))
            .unwrap_or(u32::MAX),
        limit: case.limit.as_ref().filter(known).cloned(),
        limit_per_unit: case.limit_per_unit,
        duration_s: seconds("time"),
        // Whether rate times time gives the count is asked of others: ours may time a part only.
        count: fact("rate-covers").and_then(|_| dyno_stats::median(&counted).ok()),
        in_flight: case.in_flight,
        latency_mean_s: seconds("latency-mean"),
        latency_p50_s: seconds("latency-p50"),
        offered_rate: case.offered_rate,
        generator_lag_s: seconds("generator-lag-p99"),
        generator_kept_up: fact("generator").map(|said| said == "kept its schedule"),
        windows_s: figure.steady.as_ref().map(|s| s.measured_s.unwrap_or(0.0)),
        drift: figure
            .steady
            .as_ref()
            .filter(|s| s.verdict == NOT_STEADY)
            .and_then(|s| s.change),
        machine: None,
        program: None,
        marked: false,
        pages: fact("pages"),
    })
}

/// A report that ranks systems claims that the first beats the second.
fn claims(report: &Report, case: &CaseReport) -> Option<Claim> {
    let plan = &case.plan;
    let (peer, ratio) = deciding_ratio(report, &plan.name, OURS)?;
    let ours_first = ratio.ratio >= 1.0;
    let (winner, loser) = match ours_first {
        true => (OURS, peer),
        false => (peer, OURS),
    };
    let turned = |value: f64| if ours_first { value } else { 1.0 / value };
    Some(Claim {
        text: format!("{}: {winner} before {loser}", plan.name),
        winner: id(&plan.name, winner, &plan.metric),
        loser: id(&plan.name, loser, &plan.metric),
        ratio_low: Some(turned(ratio.low).min(turned(ratio.high))),
        ratio_high: Some(turned(ratio.low).max(turned(ratio.high))),
        noise_band: ratio.band,
    })
}

/// One entry per different answer, so that a thousand equal samples make one line.
fn counts(case: &CaseReport, samples: &[Sample]) -> Vec<Count> {
    let Some(expected) = case.plan.expected_count else {
        return Vec::new();
    };
    let mut seen: BTreeMap<(&str, u64), u32> = BTreeMap::new();
    for sample in samples.iter().filter(|s| s.case == case.plan.name) {
        if let (Outcome::Done, Some(answer)) = (&sample.outcome, &sample.answer) {
            *seen.entry((&sample.system, answer.count)).or_default() += 1;
        }
    }
    seen.into_iter()
        .map(|((system, stated), times)| Count {
            subject: format!("{} on {system} ({times} samples)", case.plan.name),
            stated: stated as f64,
            expected: expected as f64,
            why: "what the plan put in".to_owned(),
        })
        .collect()
}

/// The percentiles among the metrics of a case, each system one entry.
fn latencies(report: &Report, case: &CaseReport, samples: &[Sample]) -> Vec<LatencyFigure> {
    let entry = |system: &String| {
        let points = percentiles(report, &case.plan.name, system);
        let counts: Vec<f64> = group(samples, &case.plan.name, system, Arm::Main)
            .iter()
            .filter_map(|s| s.metrics.get("latency-count").copied())
            .collect();
        (!points.is_empty()).then(|| LatencyFigure {
            subject: format!("{} on {system}", case.plan.name),
            unit: "s".to_owned(),
            count: dyno_stats::median(&counts).ok(),
            points,
        })
    };
    case.plan.systems.iter().filter_map(entry).collect()
}

/// (percentile, seconds: the median over the invocations), rising.
pub(crate) fn percentiles(report: &Report, case: &str, system: &str) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = report
        .figures
        .iter()
        .filter(|f| f.case == case && f.system == system)
        .filter_map(|f| Some((percentile_of(&f.metric)?, in_seconds(f.median, &f.unit)?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// `latency-p99` is 99, `latency-p999` is 99.9: the digits after the second are decimals.
pub(crate) fn percentile_of(metric: &str) -> Option<f64> {
    let digits = metric.strip_prefix("latency-p")?;
    let plain = (2..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let value: f64 = digits.parse().ok()?;
    match digits {
        "100" => Some(100.0),
        _ => plain.then(|| value / 10f64.powi(digits.len() as i32 - 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_names() {
        assert_eq!(percentile_of("latency-p50"), Some(50.0));
        assert_eq!(percentile_of("latency-p999"), Some(99.9));
        assert_eq!(percentile_of("latency-p9999"), Some(99.99));
        assert_eq!(percentile_of("latency-p100"), Some(100.0));
        assert_eq!(percentile_of("latency-pxx"), None);
        assert_eq!(percentile_of("throughput"), None);
    }
}
