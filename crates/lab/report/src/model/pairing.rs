//! Ours against a peer's, block by block.

use std::collections::BTreeMap;

use dyno_record::{Arm, Better, CasePlan, Outcome, Sample};
use dyno_stats::{Block, Comparison, NoiseBand, Verdict, compare, noise_band};

use super::OURS;
use super::figure::{Figure, Ratio};
use super::report::Report;
use super::samples::{group, value_of};
use super::steady::{Doubt, NOT_JUDGED, doubt, widened};
use crate::lint::{Finding, Severity};
use crate::units::{has_direction, unit_of};

pub(crate) fn better_of(better: Better) -> dyno_stats::Better {
    match better {
        Better::Higher => dyno_stats::Better::Higher,
        Better::Lower => dyno_stats::Better::Lower,
    }
}

/// Value by block of the invocations that ended well and have one above zero: a ratio needs that.
fn by_block(
    samples: &[Sample],
    case: &str,
    system: &str,
    arm: Arm,
    metric: &str,
) -> BTreeMap<u32, f64> {
    group(samples, case, system, arm)
        .into_iter()
        .filter(|s| s.outcome == Outcome::Done)
        .filter_map(|s| Some((s.block, value_of(s, metric).filter(|v| *v > 0.0)?)))
        .collect()
}

/// The invocation is the unit: each arm of a block counts with one number, so that the ratio can
/// be checked by hand from the medians. Windows inside an invocation are shown, not counted.
fn paired(ours: &BTreeMap<u32, f64>, theirs: &BTreeMap<u32, f64>) -> Vec<Block> {
    ours.iter()
        .filter_map(|(block, &a)| theirs.get(block).map(|&b| Block { a, b }))
        .collect()
}

/// What this machine calls a difference in `metric` of `case`, from the control arm; `None` when no
/// control arm ran, and nothing takes its place.
pub(crate) fn band_of(case: &CasePlan, samples: &[Sample], metric: &str) -> Option<NoiseBand> {
    let main = by_block(samples, &case.name, OURS, Arm::Main, metric);
    let control = by_block(samples, &case.name, OURS, Arm::Control, metric);
    noise_band(&paired(&main, &control)).ok()
}

/// The ratio of ours to `peer` in `metric`; absent when no block has both, and for a metric that
/// has no direction.
pub(crate) fn ratio_to(
    report: &Report,
    case: &CasePlan,
    metric: &str,
    peer: &str,
) -> Option<Ratio> {
    ratio_between(report, case, metric, (OURS, peer))
}

/// The ratio of the first of two systems to the second; above 1 means that the first is better.
pub(crate) fn ratio_between(
    report: &Report,
    case: &CasePlan,
    metric: &str,
    (first, second): (&str, &str),
) -> Option<Ratio> {
    let samples = report.samples.as_slice();
    judged(report, case, metric, [(samples, first), (samples, second)])
}

/// As [`ratio_between`], of sides whose samples come from different arms. Every verdict of a report
/// is made here. The samples of the report have the control arm, which is the measure of noise, and
/// its findings say which figures carry no verdict.
pub(crate) fn judged(
    report: &Report,
    case: &CasePlan,
    metric: &str,
    sides: [(&[Sample], &str); 2],
) -> Option<Ratio> {
    if !has_direction(case, metric) {
        return None;
    }
    let samples = report.samples.as_slice();
    let [first, second] =
        sides.map(|(samples, system)| by_block(samples, &case.name, system, Arm::Main, metric));
    // The band is always that of our own program against itself, also between two peers: it is the
    // noise of the machine in this case and metric.
    let band = band_of(case, samples, metric);
    let better = better_of(unit_of(case, metric).1);
    let seen = compare(&paired(&first, &second), better, band.as_ref()).ok()?;
    let doubt = doubt(case, sides);
    let is_rate = metric == case.metric && case.better == Better::Higher;
    let later = doubt.as_ref().map(|doubt| doubt.later);
    let widest = widened((seen.interval.low, seen.interval.high), later, is_rate);
    let mut errors = sides.iter();
    let error = errors.find_map(|(_, system)| error_of(&report.findings, &case.name, system));
    // A figure that cannot be what it is said to be decides nothing, however far apart the two are:
    // whatever made it wrong may also have made the ratio.
    let (verdict, reason, widest) = match error {
        Some(reason) => (NOT_JUDGED, reason, (0.0, f64::INFINITY)),
        None => {
            let (verdict, reason) = verdict(&seen, doubt, widest);
            (verdict, reason, widest)
        }
    };
    Some(Ratio {
        ratio: seen.ratio,
        low: seen.interval.low,
        high: seen.interval.high,
        verdict,
        reason,
        blocks: seen.n,
        band: band.map(|band| band.share()),
        widest,
    })
}

/// What the linter calls an error in the figure of a system in a case, with the name of the system
/// and of the rule: such a figure must not be quoted without it, and no verdict rests on it.
pub(crate) fn error_of(findings: &[Finding], case: &str, system: &str) -> Option<String> {
    // The subject of a finding is a figure (`case/system/metric`) or a table of percentiles
    // (`case on system`).
    let names = [format!("{case}/{system}"), format!("{case} on {system}")];
    let is_about = |subject: &str| {
        names.iter().any(|name| {
            let rest = subject.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let mut errors = findings.iter();
    let error = errors.find(|f| f.severity == Severity::Error && is_about(&f.subject))?;
    Some(format!("{system}: {} ({})", error.seen, error.rule))
}

/// The verdict and its reason. A winner stands only if it is the same whatever the rates do later.
/// Otherwise the doubt replaces the verdict but keeps the ratio, so that a reader still sees the
/// numbers.
fn verdict(seen: &Comparison, doubt: Option<Doubt>, widest: (f64, f64)) -> (&'static str, String) {
    let word = seen.verdict.as_str();
    let Some(doubt) = doubt else {
        return (word, seen.reason.clone());
    };
    let stands = match seen.verdict {
        Verdict::Faster => widest.0 > 1.0,
        Verdict::Slower => widest.1 < 1.0,
        _ => false,
    };
    if stands {
        (word, format!("{}, although {}", seen.reason, doubt.reason))
    } else {
        (doubt.verdict, doubt.reason)
    }
}

/// The ratio of `system` to the peer that comes out best against it, with the peer's name. Peers
/// that promise less do not count.
pub(crate) fn best_ratio(
    report: &Report,
    case: &CasePlan,
    metric: &str,
    system: &str,
) -> Option<(String, Ratio)> {
    let peers = case.rivals().filter(|peer| *peer != system);
    let ratios = peers.filter_map(|peer| {
        let ratio = ratio_between(report, case, metric, (system, peer))?;
        Some((peer.to_owned(), ratio))
    });
    // The lowest ratio belongs to the strongest peer, since above 1 means that `system` is better.
    ratios.min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
}

/// The figure of the metric that ranks the case.
pub(crate) fn ranking_figure<'a>(
    report: &'a Report,
    case: &str,
    system: &str,
) -> Option<&'a Figure> {
    let plan = &report.cases.iter().find(|c| c.plan.name == case)?.plan;
    report.figure(case, system, &plan.metric)
}

/// The row of another system shows ours against it; our own row, ours against the best of the
/// peers. A variant is our own program in another mode, so it is never the best peer, and neither
/// is a peer that promises less.
pub(crate) fn deciding_ratio<'a>(
    report: &'a Report,
    case: &str,
    system: &str,
) -> Option<(&'a str, &'a Ratio)> {
    let ratios = &ranking_figure(report, case, OURS)?.ratio_to;
    let plan = &report.cases.iter().find(|c| c.plan.name == case)?.plan;
    let found = match system {
        OURS => plan
            .rivals()
            .filter_map(|peer| ratios.get_key_value(peer))
            // The lowest ratio is that to the strongest peer.
            .min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)),
        other => ratios.get_key_value(other),
    };
    found.map(|(peer, ratio)| (peer.as_str(), ratio))
}
