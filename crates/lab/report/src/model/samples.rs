//! Which samples a figure is made of, and what they say.

use std::collections::BTreeSet;

use dyno_record::{Arm, Sample};

/// The value of a metric in one sample that ended well. `cpu`, `peak-rss` and `time` fall back on
/// what the runner saw from outside.
pub(crate) fn value_of(sample: &Sample, metric: &str) -> Option<f64> {
    let usage = &sample.usage;
    sample.metrics.get(metric).copied().or(match metric {
        "cpu" => usage.user_s.zip(usage.system_s).map(|(u, s)| u + s),
        "peak-rss" => usage.peak_rss_bytes.map(|bytes| bytes as f64),
        "time" => Some(sample.wall_s),
        _ => None,
    })
}

/// The samples of one case, system and arm.
pub(crate) fn group<'a>(
    samples: &'a [Sample],
    case: &str,
    system: &str,
    arm: Arm,
) -> Vec<&'a Sample> {
    let belongs = |s: &&Sample| s.case == case && s.system == system && s.arm == arm;
    samples.iter().filter(belongs).collect()
}

/// The value that all agree on, or every one of them with a stroke between.
pub(crate) fn one_value<'a>(values: impl Iterator<Item = &'a str>) -> Option<String> {
    let distinct: BTreeSet<&str> = values.collect();
    (!distinct.is_empty()).then(|| distinct.into_iter().collect::<Vec<_>>().join(" / "))
}
