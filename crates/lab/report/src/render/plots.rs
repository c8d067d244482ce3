//! What the plots of the HTML report draw.

use std::collections::BTreeMap;

use dyno_record::{Better, CasePlan};
use serde::Serialize;

use crate::model::{
    CaseReport, Figure, Flame, KeptLatencies, Report, Roofline, Series, percentiles,
};

/// Beyond this many dots a strip is a smear and the file grows without telling more.
const DOTS_MAX: usize = 100;

/// The inline data of the page.
#[derive(Serialize)]
pub(super) struct Plots {
    strips: Vec<Strip>,
    pub(super) sweeps: Vec<Sweep>,
    latencies: Vec<Latency>,
    /// Latency by time, one for each case; without series where no log was kept.
    times: Vec<Sweep>,
    /// Cost of each stage, one for each case.
    stages: Vec<Stages>,
    /// Rates below the roofs of the machine, one for each case; nothing where no system tells them.
    rooflines: Vec<Option<Roofline>>,
    /// Profiles, in the order of the cases.
    flames: Vec<Flame>,
}

#[derive(Serialize)]
struct Strip {
    case: String,
    metric: String,
    unit: String,
    better: Better,
    limit: Option<f64>,
    /// The noise band as a share, where it was measured.
    band: Option<f64>,
    series: Vec<Series>,
}

/// Cases that differ in one parameter only.
#[derive(Serialize)]
pub(super) struct Sweep {
    pub(super) title: String,
    pub(super) axis: String,
    /// Whether the axis is time, which is linear however long it is.
    time: bool,
    metric: String,
    pub(super) unit: String,
    pub(super) series: Vec<Line>,
}

#[derive(Serialize)]
pub(super) struct Line {
    pub(super) system: String,
    pub(super) points: Vec<Point>,
}

#[derive(Serialize)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    low: Option<f64>,
    high: Option<f64>,
    n: usize,
    case: String,
}

#[derive(Serialize)]
struct Latency {
    case: String,
    series: Vec<LatencyLine>,
}

#[derive(Serialize)]
struct LatencyLine {
    system: String,
    points: Vec<(f64, f64)>,
}

impl Plots {
    pub(super) fn from_report(report: &Report) -> Plots {
        Plots {
            strips: report
                .cases
                .iter()
                .map(|case| strip(report, case))
                .collect(),
            sweeps: sweeps(report),
            latencies: report
                .cases
                .iter()
                .map(|case| latency(report, case))
                .collect(),
            times: report.cases.iter().map(latency_by_time).collect(),
            stages: report
                .cases
                .iter()
                .map(|case| stages(report, case))
                .collect(),
            rooflines: report
                .cases
                .iter()
                .map(|case| case.roofline.clone())
                .collect(),
            flames: report
                .cases
                .iter()
                .flat_map(|case| case.flames.clone())
                .collect(),
        }
    }
}

fn strip(report: &Report, case: &CaseReport) -> Strip {
    let plan = &case.plan;
    let limit = report
        .figures
        .iter()
        .find(|f| f.case == plan.name && f.metric == plan.metric)
        .and_then(|f| f.limit);
    let mut series = case.series.clone();
    for one in &mut series {
        // Median and spread of the series are over all samples, so the plot loses dots and no
        // figure.
        one.dots.truncate(DOTS_MAX);
    }
    Strip {
        case: plan.name.clone(),
        metric: plan.metric.clone(),
        unit: plan.unit.clone(),
        better: plan.better,
        limit,
        band: case.band.map(|band| band.share()),
        series,
    }
}

/// Cases belong to one sweep when all but the axis parameter agree.
fn sweeps(report: &Report) -> Vec<Sweep> {
    let mut groups: BTreeMap<String, Vec<&CaseReport>> = BTreeMap::new();
    for case in &report.cases {
        let Some((axis, _)) = &case.plan.axis else {
            continue;
        };
        let mut params = case.plan.params.clone();
        params.remove(axis);
        let key = format!(
            "{} {axis} {} {} {params:?}",
            case.plan.workload, case.plan.metric, case.plan.unit
        );
        groups.entry(key).or_default().push(case);
    }
    let groups = groups.into_values().filter(|cases| cases.len() > 1);
    let groups: Vec<Vec<&CaseReport>> = groups.collect();
    let mut sweeps: Vec<Sweep> = groups
        .iter()
        .map(|cases| {
            let mut sweep = sweep(report, cases);
            sweep.title.push_str(&differing_parameters(cases, &groups));
            sweep
        })
        .collect();
    sweeps.sort_by(|a, b| a.title.cmp(&b.title));
    sweeps
}

/// The parameters in which a sweep differs from the others over the same axis; without them,
/// several plots of a report would have one title.
fn differing_parameters(cases: &[&CaseReport], groups: &[Vec<&CaseReport>]) -> String {
    let plan = &cases[0].plan;
    let axis = |plan: &CasePlan| plan.axis.as_ref().map(|(name, _)| name.clone());
    let alike: Vec<&CasePlan> = groups
        .iter()
        .map(|cases| &cases[0].plan)
        .filter(|other| (&other.workload, &other.metric) == (&plan.workload, &plan.metric))
        .filter(|other| axis(other) == axis(plan))
        .collect();
    let differs = |name: &str| {
        let value = plan.params.get(name);
        alike.iter().any(|other| other.params.get(name) != value)
    };
    let own = plan.params.iter();
    let own = own.filter(|(name, _)| Some(*name) != axis(plan).as_ref() && differs(name));
    let differing: Vec<String> = own.map(|(name, value)| parameter(name, value)).collect();
    if differing.is_empty() {
        String::new()
    } else {
        format!(" ({})", differing.join(", "))
    }
}

/// Prints a parameter of a case; a text stands without quotes: `workers = 2`, `codec = lz4`.
pub(super) fn parameter(name: &str, value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => format!("{name} = {text}"),
        other => format!("{name} = {other}"),
    }
}

fn sweep(report: &Report, cases: &[&CaseReport]) -> Sweep {
    let plan = &cases[0].plan;
    let axis = plan.axis.as_ref().map_or("", |(name, _)| name.as_str());
    let mut systems: Vec<&String> = Vec::new();
    for case in cases {
        for system in case.plan.compared() {
            if !systems.contains(&system) {
                systems.push(system);
            }
        }
    }
    Sweep {
        title: format!("{} of {} over {axis}", plan.metric, plan.workload),
        axis: axis.to_owned(),
        time: false,
        metric: plan.metric.clone(),
        unit: plan.unit.clone(),
        series: systems
            .into_iter()
            .map(|system| Line {
                system: system.clone(),
                points: points(report, cases, system),
            })
            .collect(),
    }
}

fn points(report: &Report, cases: &[&CaseReport], system: &str) -> Vec<Point> {
    let mut points: Vec<Point> = cases
        .iter()
        .filter_map(|case| {
            let (_, x) = case.plan.axis.as_ref()?;
            let figure = report.figure(&case.plan.name, system, &case.plan.metric)?;
            Some(Point {
                x: *x,
                y: figure.median,
                low: figure.low,
                high: figure.high,
                n: figure.n,
                case: case.plan.name.clone(),
            })
        })
        .collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

/// All percentiles of a kept log, else those that the samples state.
fn latency(report: &Report, case: &CaseReport) -> Latency {
    let line = |system: &String| LatencyLine {
        system: system.clone(),
        points: match case.latencies.iter().find(|kept| kept.system == *system) {
            Some(kept) => kept.curve.clone(),
            None => percentiles(report, &case.plan.name, system),
        },
    };
    Latency {
        case: case.plan.name.clone(),
        series: case.plan.compared().map(line).collect(),
    }
}

fn latency_by_time(case: &CaseReport) -> Sweep {
    let line = |kept: &KeptLatencies| Line {
        system: kept.system.clone(),
        points: kept
            .by_time
            .iter()
            .map(|at| Point {
                x: at.at_s,
                y: at.p99_s,
                low: Some(at.low_s),
                high: Some(at.high_s),
                n: at.n,
                case: case.plan.name.clone(),
            })
            .collect(),
    };
    Sweep {
        title: format!("Latency of {} by time", case.plan.name),
        axis: "seconds into the load".to_owned(),
        time: true,
        metric: "99th percentile".to_owned(),
        unit: "s".to_owned(),
        series: case.latencies.iter().map(line).collect(),
    }
}

/// What the stages of each system cost: the metrics `stage-NAME-s`, in seconds of work.
#[derive(Serialize)]
struct Stages {
    case: String,
    series: Vec<StageLine>,
}

#[derive(Serialize)]
struct StageLine {
    system: String,
    /// The stages by name, with their medians.
    stages: Vec<(String, f64)>,
}

/// The stage of a metric: `parse` of `stage-parse-s`.
pub(super) fn stage_of(metric: &str) -> Option<&str> {
    metric.strip_prefix("stage-")?.strip_suffix("-s")
}

fn stages(report: &Report, case: &CaseReport) -> Stages {
    let line = |system: &String| {
        let own = |f: &&Figure| f.case == case.plan.name && f.system == *system;
        let figures = report.figures.iter().filter(own);
        let stages: Vec<(String, f64)> = figures
            .filter_map(|f| Some((stage_of(&f.metric)?.to_owned(), f.median)))
            .collect();
        (!stages.is_empty()).then(|| StageLine {
            system: system.clone(),
            stages,
        })
    };
    Stages {
        case: case.plan.name.clone(),
        series: case.plan.compared().filter_map(line).collect(),
    }
}
