//! Our own report in the neutral form that the linter reads.

use std::collections::BTreeMap;

use dyno_record::{
    Arm, Better, CasePlan, Ceiling, Claim, CodecFigure, Condition, Count, Figures, Heading,
    KEPT_SCHEDULE, LatencyFigure, Load, Outcome, QuotedFigure, Role, STEAL_MAX, Sample, Size,
};
use dyno_stats::Verdict;

use super::OURS;
use super::beside::is_interleaved;
use super::figure::{Figure, best_known};
use super::report::{CaseReport, Report};
use super::samples::{group, one_value};
use super::steady::NOT_STEADY;
use crate::units::in_seconds;

/// Axes of a sweep that count threads of the system.
const THREADS: [&str; 4] = ["threads", "workers", "cores", "jobs"];

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
        unknown: Vec::new(),
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
        codecs: codecs(report),
        spread_words: Vec::new(),
        conditions: conditions(report),
        headings: headings(report),
    }
}

/// The titles of all cases, and of all tables over each of their cases.
fn headings(report: &Report) -> Vec<Heading> {
    let of_case = |text: &str, case: &CaseReport| {
        let plan = &case.plan;
        let numbers = plan.params.iter();
        let numbers = numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
        Heading {
            text: text.to_owned(),
            case: plan.name.clone(),
            parameters: numbers.chain(plan.axis.clone()).collect(),
        }
    };
    let mut headings: Vec<Heading> = report
        .cases
        .iter()
        .map(|case| of_case(&case.plan.title, case))
        .collect();
    for table in &report.run.plan.tables {
        for row in &table.rows {
            let case = report.cases.iter().find(|case| case.plan.name == row.case);
            headings.extend(case.map(|case| of_case(&table.title, case)));
        }
    }
    headings
}

/// What the record itself says against its figures.
fn conditions(report: &Report) -> Vec<Condition> {
    let run = &report.run;
    let stolen = stolen_share(report);
    // What was taken away during the samples says more than a look before the run, so the two are
    // not told beside each other.
    let told = |name: &str| name == "steal" && stolen.is_some();
    let spoils = run.machine.checks.iter().filter(|c| c.state == "spoils");
    let spoils = spoils.filter(|check| !told(&check.name));
    let mut conditions: Vec<Condition> = spoils
        .map(|check| Condition {
            name: check.name.clone(),
            seen: check.seen.clone(),
        })
        .collect();
    let mut add = |name: &str, seen: String| {
        let name = name.to_owned();
        conditions.push(Condition { name, seen });
    };
    if let Some(share) = stolen {
        let percent = share * 100.0;
        add("steal", format!("{percent:.1}% stolen while samples ran"));
    }
    if run.plan.size == Size::Tiny {
        add(
            "size",
            "the size is tiny, which tests a suite and measures nothing".to_owned(),
        );
    }
    if run.finished_at.is_none() {
        let is_empty = |case: &&CaseReport| {
            let name = &case.plan.name;
            !report.figures.iter().any(|figure| &figure.case == name)
        };
        let missing = report.cases.iter().filter(is_empty).count();
        let all = report.cases.len();
        add(
            "end",
            format!("the run was stopped with {missing} of {all} cases not measured"),
        );
    }
    if let Some(command) = &run.beside
        && !is_interleaved(&report.samples)
    {
        add("beside", format!("this ran beside it: {command}"));
    }
    conditions
}

/// The share of the processor time that the host took away in the middle one of the samples, where
/// it is more than `dyno doctor` accepts.
fn stolen_share(report: &Report) -> Option<f64> {
    let samples = report.samples.iter();
    let shares: Vec<f64> = samples.filter_map(|sample| sample.usage.steal).collect();
    let middle = dyno_stats::median(&shares).ok()?;
    (middle > STEAL_MAX).then_some(middle)
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
        // The value is the better of the two methods, so the other one stands beside it.
        independent: limit.independent.as_ref().map(|(_, other)| {
            if *other == best_known(limit) {
                limit.value
            } else {
                *other
            }
        }),
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
    // Experiments may lack what a figure must have: one whose output goes nowhere is above the
    // limit of the disk.
    if case.metric != figure.metric || case.role(&figure.system) == Role::Experiment {
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
    let steady = figure.steady.as_ref();
    let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut quoted = QuotedFigure::new(
        &id(&figure.case, &figure.system, &figure.metric),
        &figure.unit,
        figure.better,
        figure.median,
    );
    quoted.case.clone_from(&figure.case);
    quoted.system.clone_from(&figure.system);
    quoted.metric.clone_from(&figure.metric);
    quoted.n = Some(small(figure.n));
    (quoted.low, quoted.high) = (figure.low, figure.high);
    quoted.failed = small(report.trouble_count(&figure.case, &figure.system));
    // A variant may be free of what bounds the case: one that keeps its log in memory does not wait
    // for the disk.
    let is_bounded = case.role(&figure.system) != Role::Variant;
    let limit = case.limit.as_ref().filter(|_| is_bounded);
    quoted.limit = limit.filter(known).cloned();
    quoted.limit_per_unit = case.limit_per_unit;
    // What the runner saw from outside has the start of the process in it, which no rate covers.
    let says_time = done.iter().all(|s| s.metrics.contains_key("time"));
    quoted.duration_s = seconds("time").filter(|_| says_time);
    // Where the plan knows the number of units of work, an answer counts those and not its rows.
    let counts_work = case.expected_count.filter(|_| case.load == Load::Job);
    quoted.count = counts_work.and_then(|_| dyno_stats::median(&counted).ok());
    quoted.in_flight = case.in_flight;
    quoted.latency_mean_s = seconds("latency-mean");
    quoted.latency_p50_s = seconds("latency-p50");
    quoted.latency = Some(subject(&figure.case, &figure.system))
        .filter(|_| !percentiles(report, &figure.case, &figure.system).is_empty());
    quoted.offered_rate = case.offered_rate;
    quoted.generator_lag_s = seconds("generator-lag-p99");
    quoted.generator_kept_up = fact("generator").map(|text| text == KEPT_SCHEDULE);
    quoted.windows_s = steady.map(|s| s.measured_s.unwrap_or(0.0));
    let drifting = steady.filter(|s| s.verdict == NOT_STEADY);
    quoted.drift = drifting.and_then(|s| s.change);
    quoted.pages = pages(case);
    add_load(&mut quoted, report, case);
    Some(quoted)
}

/// The load under which the figure was taken: a rate, or a number of threads.
fn add_load(quoted: &mut QuotedFigure, report: &Report, case: &CasePlan) {
    // Our clients send on a schedule: a latency at a rate is what such a case is for, a throughput
    // at that rate is the client's own.
    if case.offered_rate.is_some() && quoted.better == Better::Lower {
        quoted.open_loop = Some(true);
        // Only where a latency is that of a request is the throughput one of requests.
        let per_request = quoted.metric.starts_with("latency-");
        let rate = report.figure(&quoted.case, &quoted.system, "throughput");
        let rate = rate.filter(|_| per_request);
        quoted.achieved_rate = rate.map(|rate| rate.median);
    }
    let threads = case.axis.as_ref();
    let threads = threads.filter(|(name, _)| THREADS.contains(&name.as_str()));
    if let Some((name, value)) = threads {
        quoted.threads = Some(*value);
        let (sweep, _) = case.name.rsplit_once('-').unwrap_or((&case.name, name));
        quoted.sweep = Some(sweep.to_owned());
    }
}

/// What the pages of a case hold, where its parameters name a class of pages.
fn pages(case: &CasePlan) -> Option<String> {
    let class = case.params.get("class")?.as_str()?;
    let is_zeros = class == "zeros";
    Some(if is_zeros { "same-filled" } else { class }.to_owned())
}

/// The speeds of each codec on each kind of data, from cases that name codec, class and direction.
fn codecs(report: &Report) -> Vec<CodecFigure> {
    let mut found: BTreeMap<(String, String, String), CodecFigure> = BTreeMap::new();
    for case in &report.cases {
        let plan = &case.plan;
        for system in plan.compared() {
            let own = plan.variants.get(system);
            let param = |name: &str| {
                let value = own
                    .and_then(|own| own.get(name))
                    .or(plan.params.get(name))?;
                value.as_str()
            };
            let named = param("codec").zip(param("class")).zip(param("direction"));
            let Some(((codec, data), direction)) = named else {
                continue;
            };
            let speed = report.figure(&plan.name, system, &plan.metric);
            let speed = speed.filter(|f| f.better == Better::Higher);
            let (Some(speed), Some(strength)) = (speed, strength(codec)) else {
                continue;
            };
            let key = (data.to_owned(), system.clone(), codec.to_owned());
            let entry = found.entry(key).or_insert_with(|| CodecFigure {
                codec: format!("{codec} of {system}"),
                strength,
                data: data.to_owned(),
                unit: speed.unit.clone(),
                compress: None,
                decompress: None,
                ratio: None,
            });
            let ratio = report.figure(&plan.name, system, "compression");
            entry.ratio = ratio.map(|f| f.median).or(entry.ratio);
            match direction {
                "compress" => entry.compress = Some(speed.median),
                "decompress" => entry.decompress = Some(speed.median),
                _ => (),
            }
        }
    }
    found.into_values().collect()
}

/// How hard a codec compresses beside the others: `lz4`, then `zstd` by its level.
fn strength(codec: &str) -> Option<u32> {
    let (name, level) = codec.split_once([':', '-']).unwrap_or((codec, "1"));
    match name {
        "lz4" => Some(1),
        "zstd" => level.parse().ok().map(|level: u32| level.saturating_add(1)),
        _ => None,
    }
}

/// The subject of the percentiles of a case on a system.
fn subject(case: &str, system: &str) -> String {
    format!("{case} on {system}")
}

/// A report claims that one is faster where a verdict says so, and nowhere else.
fn claims(report: &Report, case: &CaseReport) -> Vec<Claim> {
    let plan = &case.plan;
    let Some(ours) = report.figure(&plan.name, OURS, &plan.metric) else {
        return Vec::new();
    };
    let claim = |peer: &str| {
        let ratio = ours.ratio_to.get(peer)?;
        let (winner, loser) = match ratio.verdict {
            verdict if verdict == Verdict::Faster.as_str() => (OURS, peer),
            verdict if verdict == Verdict::Slower.as_str() => (peer, OURS),
            _ => return None,
        };
        let turned = |value: f64| if winner == OURS { value } else { 1.0 / value };
        let ends = [turned(ratio.low), turned(ratio.high)];
        Some(Claim {
            text: format!("{}: {winner} before {loser}", plan.name),
            winner: id(&plan.name, winner, &plan.metric),
            loser: id(&plan.name, loser, &plan.metric),
            ratio: Some(turned(ratio.ratio)),
            across: Vec::new(),
            ratio_low: Some(ends[0].min(ends[1])),
            ratio_high: Some(ends[0].max(ends[1])),
            noise_band: ratio.band,
        })
    };
    plan.peers().filter_map(claim).collect()
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
            about: false,
        })
        .collect()
}

/// The percentiles among the metrics of a case, each system one entry.
fn latencies(report: &Report, case: &CaseReport, samples: &[Sample]) -> Vec<LatencyFigure> {
    let entry = |system: &String| {
        let points = percentiles(report, &case.plan.name, system);
        let counts: Vec<f64> = group(samples, &case.plan.name, system, Arm::Main)
            .iter()
            // A sample with a wrong answer keeps its metrics, and its percentiles are in no figure.
            .filter(|s| s.outcome == Outcome::Done)
            .filter_map(|s| s.metrics.get("latency-count").copied())
            .collect();
        (!points.is_empty()).then(|| LatencyFigure {
            subject: subject(&case.plan.name, system),
            unit: "s".to_owned(),
            count: dyno_stats::median(&counts).ok(),
            mean: None,
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
