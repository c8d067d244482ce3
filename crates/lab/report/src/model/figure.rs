//! One figure: a number with its unit, its spread and its count.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::{Arm, Better, CasePlan, Limit, Outcome, Run, Sample};
use dyno_stats::{median, median_interval};
use serde::Serialize;

use super::samples::{group, value_of};
use super::steady::{NOT_JUDGED, NOT_STEADY, Steady, steady_of};
use crate::units::unit_of;

/// Samples from which on the spread is the 95% interval of the median; with fewer it is their
/// range.
const INTERVAL_FROM: usize = 5;

/// A figure in the form of `report.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Name of the suite that was run.
    pub suite: String,
    /// Name of the case, unique in the suite.
    pub case: String,
    /// `dyno` or a peer's name.
    pub system: String,
    /// Name of the metric, for example `throughput`.
    pub metric: String,
    /// Unit of median, low, high and limit.
    pub unit: String,
    /// The direction in which the metric is better.
    pub better: Better,
    /// Invocations that ended well; the failed are listed, never averaged in.
    pub n: usize,
    /// Median over these invocations.
    pub median: f64,
    /// Lower end of the 95% bootstrap interval of the median; with two to four samples the lowest
    /// of them; absent with one.
    pub low: Option<f64>,
    /// Upper end of the same interval or range.
    pub high: Option<f64>,
    /// What the machine can do, in this unit; absent when the case names no measured limit.
    pub limit: Option<f64>,
    /// How much of that was reached: 0.5 is half.
    pub share_of_limit: Option<f64>,
    /// How we compare with each other system of the case, by its name; empty on the figures of
    /// others, and on counts, of which neither more nor fewer are better.
    pub ratio_to: BTreeMap<String, Ratio>,
    /// What the seed document printed, on its own machine.
    pub seed_figure: Option<f64>,
    /// Whether the rate stayed level; only on the ranking metric and the throughput of a service.
    pub steady: Option<Steady>,
}

/// The ratio of ours to another system, paired by block; above 1 means that ours is better.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// Ratio of the medians, turned so that above 1 is better.
    pub ratio: f64,
    /// Lower end of its 95% interval.
    pub low: f64,
    /// Upper end of the same interval.
    pub high: f64,
    /// `faster`, `slower`, `no difference shown`, `unstable`, `not steady` or `not judged`.
    pub verdict: &'static str,
    /// Why the verdict is what it is.
    #[serde(skip)]
    pub reason: String,
    /// Blocks in which both ended well.
    #[serde(skip)]
    pub blocks: usize,
    /// The noise band used, as a share: 0.02 is 2%; absent when no control arm ran.
    #[serde(skip)]
    pub band: Option<f64>,
    /// The interval, with all that the rates of the two may become if they are measured for longer;
    /// from 0 without an end where the linter calls one of the two figures an error.
    #[serde(skip)]
    pub widest: (f64, f64),
}

impl Ratio {
    /// Whether the verdict decides nothing: neither that one is better, nor that a difference was
    /// looked for and not seen.
    pub(crate) fn is_open(&self) -> bool {
        let unstable = dyno_stats::Verdict::Unstable.as_str();
        [NOT_STEADY, NOT_JUDGED, unstable].contains(&self.verdict)
    }

    /// Whether one of the two rates is not steady, or was not judged, or one of the two figures is
    /// an error, so that the number may become another one even where the verdict stands.
    pub(crate) fn is_doubted(&self) -> bool {
        self.widest != (self.low, self.high)
    }
}

impl Figure {
    /// How its rate went, unless that was level or is not asked.
    pub(crate) fn unsteady(&self) -> Option<&Steady> {
        self.steady.as_ref().filter(|steady| !steady.is_steady())
    }
}

/// Metric names of a case, the ranking one first.
pub(crate) fn metrics_of(case: &CasePlan, samples: &[Sample]) -> Vec<String> {
    let mut names: BTreeSet<&str> = samples
        .iter()
        .filter(|s| s.case == case.name)
        .flat_map(|s| s.metrics.keys().map(String::as_str))
        .collect();
    names.extend(["time", "cpu", "peak-rss"]);
    names.remove(case.metric.as_str());
    std::iter::once(case.metric.clone())
        .chain(names.into_iter().map(str::to_owned))
        .collect()
}

/// The figures of one case on one system, without ratios.
pub(crate) fn figures_of_system(
    run: &Run,
    case: &CasePlan,
    system: &str,
    samples: &[Sample],
) -> Vec<Figure> {
    let done: Vec<&Sample> = group(samples, &case.name, system, Arm::Main)
        .into_iter()
        .filter(|s| s.outcome == Outcome::Done)
        .collect();
    let steady = steady_of(case, samples, system);
    metrics_of(case, samples)
        .iter()
        .filter_map(|metric| {
            let values: Vec<f64> = done.iter().filter_map(|s| value_of(s, metric)).collect();
            let mut figure = figure(run, case, system, metric, &values)?;
            // Time and memory of a service grow with the length of the run, so they have no level
            // to keep.
            let is_rate = *metric == case.metric || metric == "throughput";
            figure.steady = steady.clone().filter(|_| is_rate);
            Some(figure)
        })
        .collect()
}

fn figure(
    run: &Run,
    case: &CasePlan,
    system: &str,
    metric: &str,
    values: &[f64],
) -> Option<Figure> {
    let middle = median(values).ok()?;
    let (unit, better) = unit_of(case, metric);
    let ranking = metric == case.metric;
    let limit = ranking.then(|| limit_of(run, case)).flatten();
    // The plan's seed draws the resamples, so a record gives the same interval whenever it is
    // printed.
    let spread = spread_of(values, run.plan.order_seed);
    Some(Figure {
        suite: run.plan.suite.clone(),
        case: case.name.clone(),
        system: system.to_owned(),
        metric: metric.to_owned(),
        unit,
        better,
        n: values.len(),
        median: middle,
        low: spread.map(|s| s.0),
        high: spread.map(|s| s.1),
        limit,
        share_of_limit: limit.and_then(|limit| share(middle, limit, better)),
        ratio_to: BTreeMap::new(),
        seed_figure: case
            .seed_figure
            .as_ref()
            .filter(|_| ranking)
            .map(|seed| seed.value),
        steady: None,
    })
}

fn spread_of(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    if values.len() >= INTERVAL_FROM {
        // Fewer than five samples have no useful interval: the bootstrap could only draw the same
        // few numbers again, and would look more certain than their range.
        let interval = median_interval(values, seed).ok()?;
        return Some((interval.low, interval.high));
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (values.len() > 1).then_some((low, high))
}

/// The limit of a case as the record has it.
pub(crate) fn stored_limit<'a>(run: &'a Run, case: &CasePlan) -> Option<&'a Limit> {
    let name = case.limit.as_ref()?;
    run.limits.iter().find(|limit| &limit.name == name)
}

/// The better of our code's value and the independent tool's: a slow part must not flatter us.
pub(crate) fn best_known(limit: &Limit) -> f64 {
    match (&limit.independent, limit.better) {
        (Some((_, other)), Better::Higher) => limit.value.max(*other),
        (Some((_, other)), Better::Lower) => limit.value.min(*other),
        (None, _) => limit.value,
    }
}

fn limit_of(run: &Run, case: &CasePlan) -> Option<f64> {
    stored_limit(run, case).map(|limit| best_known(limit) * case.limit_per_unit.unwrap_or(1.0))
}

/// How much of a limit a value is, turned so that more is better; `None` where that is not finite.
pub(crate) fn share(value: f64, limit: f64, better: Better) -> Option<f64> {
    let share = match better {
        Better::Higher => value / limit,
        // Of a least possible time, the share is how much of ours it is.
        Better::Lower => limit / value,
    };
    // A value or a limit of zero has no share.
    share.is_finite().then_some(share)
}
