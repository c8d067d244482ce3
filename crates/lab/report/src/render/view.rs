//! The report as the templates see it: text, ready to be escaped and set.

use dyno_record::{Limit, MachineCheck, Outcome, Sample};
use serde::Serialize;

use super::plots::Plots;
use crate::headline::{Headline, headline};
use crate::lint::Finding;
use crate::model::{CaseReport, Figure, FilledTable, Report, best_known, spread_text};
use crate::units::{quantity, range_text, ratio_range, ratio_text, share_text};

/// Rows of the raw table, about 500 bytes each; the record has all.
const RAW_ROWS_MAX: usize = 600;

#[derive(Serialize)]
pub(super) struct View {
    title: String,
    suite: String,
    size: String,
    purpose: String,
    seed_document: String,
    started_at: String,
    ended: String,
    beside: String,
    environment: Vec<(String, String)>,
    checks: Vec<MachineCheck>,
    headline: Headline,
    findings: Vec<Finding>,
    limits: Vec<LimitRow>,
    tables: Vec<FilledTable>,
    sweeps: Vec<String>,
    cases: Vec<CaseView>,
    commands: Vec<String>,
    troubles: Vec<crate::model::Trouble>,
    raw: Vec<RawRow>,
    raw_left_out: usize,
}

#[derive(Serialize)]
struct LimitRow {
    name: String,
    value: String,
    spread: String,
    method: String,
    independent: String,
}

#[derive(Serialize)]
struct CaseView {
    name: String,
    title: String,
    workload: String,
    params: String,
    analysis: String,
    limit: String,
    seed: String,
    band: String,
    has_latency: bool,
    figures: Vec<FigureRow>,
}

#[derive(Serialize)]
struct FigureRow {
    system: String,
    metric: String,
    median: String,
    range: String,
    spread: String,
    ratios: Vec<RatioText>,
    loud: bool,
}

#[derive(Serialize)]
struct RatioText {
    text: String,
    reason: String,
}

#[derive(Serialize)]
struct RawRow {
    case: String,
    system: String,
    block: u32,
    at: String,
    outcome: String,
    bad: bool,
    wall: String,
    metrics: String,
    answer: String,
    usage: String,
    facts: String,
}

impl View {
    pub(super) fn of(report: &Report) -> View {
        let run = &report.run;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        View {
            title: run.plan.title.clone(),
            suite: run.plan.suite.clone(),
            size: format!("{:?}", run.plan.size).to_lowercase(),
            purpose: run.plan.purpose.clone(),
            seed_document: text(&run.plan.seed_document),
            started_at: run.started_at.clone(),
            ended: match &run.finished_at {
                Some(at) => format!("ended {at}"),
                None => "did not end: these are the samples so far".to_owned(),
            },
            beside: text(&run.beside),
            environment: environment(report),
            checks: bad_checks(report),
            headline: headline(report),
            findings: report.findings.clone(),
            limits: run.limits.iter().map(limit_row).collect(),
            tables: report.tables.clone(),
            sweeps: Plots::of(report)
                .sweeps
                .into_iter()
                .map(|s| s.title)
                .collect(),
            cases: report.cases.iter().map(|c| case_view(report, c)).collect(),
            commands: report.commands(),
            troubles: report.troubles.clone(),
            raw: report
                .samples
                .iter()
                .take(RAW_ROWS_MAX)
                .map(raw_row)
                .collect(),
            raw_left_out: report.samples.len().saturating_sub(RAW_ROWS_MAX),
        }
    }
}

/// Machine, then program, then the systems with their versions.
pub(super) fn environment(report: &Report) -> Vec<(String, String)> {
    let run = &report.run;
    let mut rows = run.machine.facts.clone();
    rows.push(("fingerprint".to_owned(), run.machine.fingerprint.clone()));
    let program = &run.program;
    rows.push((
        "program".to_owned(),
        format!(
            "dyno {}, {} build, revision {}, hash {}",
            program.version, program.profile, program.git_revision, program.hash
        ),
    ));
    rows.extend(run.systems.iter().map(|system| match &system.missing {
        None => (system.name.clone(), format!("version {}", system.version)),
        Some(reason) => (system.name.clone(), format!("took no part: {reason}")),
    }));
    if let Some(command) = &run.beside {
        rows.push(("beside the run".to_owned(), command.clone()));
    }
    rows
}

/// What `doctor` found good needs no place on page one.
fn bad_checks(report: &Report) -> Vec<MachineCheck> {
    let checks = report.run.machine.checks.iter();
    checks
        .filter(|check| check.state != "good")
        .cloned()
        .collect()
}

fn limit_row(limit: &Limit) -> LimitRow {
    LimitRow {
        name: limit.name.clone(),
        value: quantity(best_known(limit), &limit.unit),
        spread: format!(
            "{}, n = {}",
            range_text(limit.low, limit.high, &limit.unit),
            limit.n
        ),
        method: limit.method.clone(),
        independent: match &limit.independent {
            Some((tool, value)) => format!(
                "ours {}, {tool} {}",
                quantity(limit.value, &limit.unit),
                quantity(*value, &limit.unit)
            ),
            None => "no independent tool ran".to_owned(),
        },
    }
}

fn case_view(report: &Report, case: &CaseReport) -> CaseView {
    let plan = &case.plan;
    let figures = || report.figures.iter().filter(|f| f.case == plan.name);
    let limit = figures().find_map(|f| f.limit.map(|limit| (limit, &f.unit)));
    let params = plan.params.iter().map(|(name, value)| match value {
        serde_json::Value::String(text) => format!("{name} = {text}"),
        other => format!("{name} = {other}"),
    });
    CaseView {
        name: plan.name.clone(),
        title: plan.title.clone(),
        workload: plan.workload.clone(),
        params: params.collect::<Vec<_>>().join(", "),
        analysis: plan.analysis.clone(),
        limit: match (&plan.limit, limit) {
            (Some(name), Some((limit, unit))) => format!("{name}: {}", quantity(limit, unit)),
            (Some(name), None) => format!("{name}: not available: it was not measured"),
            (None, _) => String::new(),
        },
        seed: match &plan.seed_figure {
            Some(seed) => format!("{} ({})", quantity(seed.value, &plan.unit), seed.note),
            None => String::new(),
        },
        band: match case.band {
            (band, 0) => format!("±{:.1}%, assumed: no control arm ran", band * 100.0),
            (band, n) => format!(
                "±{:.1}%, from {n} blocks of dyno against itself",
                band * 100.0
            ),
        },
        has_latency: figures().any(|f| f.metric.starts_with("latency-p")),
        figures: figures().map(figure_row).collect(),
    }
}

fn figure_row(figure: &Figure) -> FigureRow {
    let unsteady = figure.steady.as_ref().filter(|steady| !steady.is_steady());
    let mark = unsteady.map_or(String::new(), |steady| format!(" ({})", steady.text()));
    let median = quantity(figure.median, &figure.unit) + &mark;
    FigureRow {
        system: figure.system.clone(),
        metric: figure.metric.clone(),
        median: match figure.share_of_limit {
            Some(share) => format!("{median} ({} of limit)", share_text(share)),
            None => median,
        },
        range: match figure.low.zip(figure.high) {
            Some((low, high)) => range_text(low, high, &figure.unit),
            None => "n = 1".to_owned(),
        },
        spread: spread_text(figure),
        ratios: figure
            .ratio_to
            .iter()
            .map(|(peer, ratio)| RatioText {
                text: format!(
                    "{} {peer} ({}), {}",
                    ratio_text(ratio.ratio),
                    ratio_range(ratio.low, ratio.high),
                    ratio.verdict
                ),
                reason: ratio.reason.clone(),
            })
            .collect(),
        loud: figure.n == 1 || unsteady.is_some(),
    }
}

fn raw_row(sample: &Sample) -> RawRow {
    let usage = &sample.usage;
    let used = [
        ("user", usage.user_s.map(|v| quantity(v, "s"))),
        ("system", usage.system_s.map(|v| quantity(v, "s"))),
        (
            "peak",
            usage.peak_rss_bytes.map(|v| quantity(v as f64, "B")),
        ),
        ("steal", usage.steal.map(share_text)),
        ("load", usage.load.map(|v| format!("{v:.2}"))),
    ];
    let used = used.into_iter().map(|(name, value)| match value {
        Some(value) => format!("{name} {value}"),
        None => format!("{name} not available"),
    });
    let pairs = |items: Vec<String>| items.join(", ");
    RawRow {
        case: sample.case.clone(),
        system: match sample.arm {
            dyno_record::Arm::Main => sample.system.clone(),
            dyno_record::Arm::Control => format!("{} again", sample.system),
        },
        block: sample.block,
        at: quantity(sample.at_s, "s"),
        outcome: match &sample.outcome {
            Outcome::Done => "done".to_owned(),
            Outcome::Failed(reason) => format!("failed: {reason}"),
            Outcome::Hung(reason) => format!("hung: {reason}"),
        },
        bad: sample.outcome != Outcome::Done,
        wall: quantity(sample.wall_s, "s"),
        metrics: pairs(
            sample
                .metrics
                .iter()
                .map(|(k, v)| format!("{k} {v}"))
                .collect(),
        ),
        answer: match &sample.answer {
            Some(answer) => format!("{} / {}", answer.count, answer.checksum),
            None => "none".to_owned(),
        },
        usage: pairs(used.collect()),
        facts: pairs(
            sample
                .facts
                .iter()
                .map(|(k, v)| format!("{k}: {v}"))
                .collect(),
        ),
    }
}
