//! Whether the rate of a service stayed level while it was measured, told from the windows of its
//! samples. A rate that changes as it runs is a plot and not a number, and one that was measured
//! for too short a time is neither. What is concluded from them must hold whatever they do later.

use dyno_record::{Arm, CasePlan, Load, MEASURED_MIN_S, Outcome, Sample};
use dyno_stats::{Steadiness, SteadyOptions, Trend, steady_from, trend};
use serde::Serialize;

use super::samples::group;
use crate::units::number;

/// Finer windows are joined: they would say more about the clock than about the trend.
const WINDOWS_MAX: usize = 60;

/// One of the words of [`Steady::verdict`]: the rate is level, or changes by no more than noise.
pub(crate) const STEADY: &str = "steady";
pub(crate) const NOT_STEADY: &str = "not steady";
pub(crate) const NOT_JUDGED: &str = "not judged";

/// What the samples of one system say of its rate over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Steady {
    /// `steady`, `not steady`, or `not judged`.
    pub verdict: &'static str,
    /// Why, in half a sentence.
    pub reason: String,
    /// Seconds that the shortest sample measured; absent when its windows are not stretches of
    /// time.
    pub measured_s: Option<f64>,
    /// The last third of the windows against the first, less 1: the median over the samples.
    pub change: Option<f64>,
    /// The change that these samples would have shown in four cases of five.
    pub resolution: Option<f64>,
    /// Seconds after which all samples are steady; only where they are not steady as a whole, and
    /// at least half of each is.
    pub from_s: Option<f64>,
}

impl Steady {
    fn not_judged(reason: String, measured_s: Option<f64>) -> Steady {
        Steady {
            verdict: NOT_JUDGED,
            reason,
            measured_s,
            change: None,
            resolution: None,
            from_s: None,
        }
    }

    /// `not steady: the rate fell by 43%`.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}", self.verdict, self.reason)
    }

    pub(crate) fn is_steady(&self) -> bool {
        self.verdict == STEADY
    }

    /// The least and the most of what the rate may become if it is measured for longer, as shares
    /// of what was measured. A change that was seen may go on in its direction without an end; one
    /// that would not have been seen may have happened either way.
    pub(crate) fn later(&self) -> (f64, f64) {
        match (self.verdict, self.change, self.resolution) {
            (STEADY, ..) => (1.0, 1.0),
            (NOT_STEADY, Some(change), _) if change < 0.0 => (0.0, 1.0),
            (NOT_STEADY, Some(_), _) => (1.0, f64::INFINITY),
            (_, _, Some(unseen)) => (1.0 / (1.0 + unseen), 1.0 + unseen),
            _ => (0.0, f64::INFINITY),
        }
    }
}

/// Judges the samples of `system` that ended well, all together; `None` for a job, and for a system
/// without samples.
pub(crate) fn steady_of(case: &CasePlan, samples: &[Sample], system: &str) -> Option<Steady> {
    let done: Vec<&Sample> = group(samples, &case.name, system, Arm::Main)
        .into_iter()
        .filter(|sample| sample.outcome == Outcome::Done)
        .collect();
    if case.load == Load::Job || done.is_empty() {
        return None;
    }
    Some(judge(&done))
}

fn judge(done: &[&Sample]) -> Steady {
    let measured: Option<Vec<f64>> = done.iter().map(|sample| sample.measured_s()).collect();
    let Some(measured) = measured else {
        let reason = "no rate by time was recorded".to_owned();
        return Steady::not_judged(reason, None);
    };
    // The shortest sample counts, because one that was cut short shows nothing of what comes later.
    let measured_s = measured.iter().copied().fold(f64::INFINITY, f64::min);
    // Windows are made of a clock's nanoseconds, so 20 s may be a little less.
    if measured_s < MEASURED_MIN_S * 0.999 {
        let shown = number(measured_s);
        let reason = format!("{shown} s measured, {MEASURED_MIN_S} s are wanted");
        return Steady::not_judged(reason, Some(measured_s));
    }
    let runs: Vec<Vec<f64>> = done.iter().map(|sample| joined(&sample.windows)).collect();
    let windows: Vec<&[f64]> = runs.iter().map(Vec::as_slice).collect();
    let options = SteadyOptions::default();
    match trend(&windows, &options) {
        Ok(seen) => from_trend(&seen, &options, &windows, measured_s),
        Err(error) => Steady::not_judged(error.to_string(), Some(measured_s)),
    }
}

fn from_trend(
    seen: &Trend,
    options: &SteadyOptions,
    windows: &[&[f64]],
    measured_s: f64,
) -> Steady {
    let percent = |share: f64| format!("{:.0}%", share.abs() * 100.0);
    let (verdict, reason, from) = match seen.judge(options) {
        Steadiness::Steady => {
            let (change, resolution) = (percent(seen.change), percent(seen.resolution));
            let text = format!("it changed by {change}; {resolution} would have been seen");
            (STEADY, text, None)
        }
        Steadiness::NotSteady => {
            let went = if seen.change < 0.0 { "fell" } else { "rose" };
            let text = format!("the rate {went} by {}", percent(seen.change));
            (NOT_STEADY, text, steady_from(windows, options))
        }
        Steadiness::TooUneven => {
            let text = format!(
                "its windows scatter so much that a change of {} would not be seen",
                // Slightly less than the resolution, which is the least change that would be seen.
                percent(seen.resolution * 0.99)
            );
            (NOT_JUDGED, text, None)
        }
    };
    let shortest = windows.iter().map(|windows| windows.len()).min();
    let each_s = measured_s / shortest.unwrap_or(1) as f64;
    Steady {
        verdict,
        reason,
        measured_s: Some(measured_s),
        change: Some(seen.change),
        resolution: Some(seen.resolution),
        from_s: from.map(|from| from as f64 * each_s),
    }
}

/// Returns at most [`WINDOWS_MAX`] windows: neighbours are averaged, and what is left over at the
/// end, less than one of the longer windows, is dropped.
fn joined(windows: &[f64]) -> Vec<f64> {
    let together = windows.len().div_ceil(WINDOWS_MAX).max(1);
    windows
        .chunks_exact(together)
        .map(|chunk| chunk.iter().sum::<f64>() / together as f64)
        .collect()
}

/// An interval, with all that it may become if what it was made of is measured for longer. How a
/// rate goes on says nothing of other metrics, which may then become anything.
pub(crate) fn widened(
    (low, high): (f64, f64),
    later: Option<(f64, f64)>,
    is_rate: bool,
) -> (f64, f64) {
    let (least, most) = match later {
        None => (1.0, 1.0),
        Some(later) if is_rate => later,
        Some(_) => (0.0, f64::INFINITY),
    };
    (low * least, high * most)
}

/// What is in doubt of the ratio of two systems of a case.
pub(crate) struct Doubt {
    /// `not steady` or `not judged`.
    pub verdict: &'static str,
    /// Whose rate it is, and why.
    pub reason: String,
    /// The least and the most by which the ratio of the first rate to the second may be multiplied
    /// if both are measured for longer.
    pub later: (f64, f64),
}

/// What is in doubt of the ratio of two systems, if something is. It is named after a rate that is
/// not steady, or else after one that was not judged.
pub(crate) fn doubt(case: &CasePlan, sides: [(&[Sample], &str); 2]) -> Option<Doubt> {
    let found = sides.map(|(samples, system)| (system, steady_of(case, samples, system)));
    // A rate that is known to change says more than one that could not be judged, so it is named
    // even if it is the second system's.
    let (verdict, reason) = [NOT_STEADY, NOT_JUDGED].into_iter().find_map(|verdict| {
        let mut known = found.iter();
        let (system, steady) = known.find_map(|(system, steady)| {
            let steady = steady.as_ref().filter(|steady| steady.verdict == verdict)?;
            Some((system, steady))
        })?;
        Some((verdict, format!("{system}: {}", steady.reason)))
    })?;
    let [first, second] = found.map(|(_, steady)| steady.map_or((1.0, 1.0), |it| it.later()));
    let later = (first.0 / second.1, first.1 / second.0);
    Some(Doubt {
        verdict,
        reason,
        later,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rate_may_become_follows_from_what_was_seen() {
        let steady = |verdict, change, resolution| Steady {
            verdict,
            change,
            resolution,
            ..Steady::not_judged(String::new(), None)
        };
        let end = f64::INFINITY;
        for (verdict, change, resolution, later) in [
            (STEADY, Some(0.04), Some(0.1), (1.0, 1.0)),
            (NOT_STEADY, Some(-0.08), Some(0.1), (0.0, 1.0)),
            (NOT_STEADY, Some(0.08), Some(0.1), (1.0, end)),
            (NOT_JUDGED, Some(0.01), Some(0.25), (0.8, 1.25)),
            (NOT_JUDGED, None, None, (0.0, end)),
        ] {
            assert_eq!(steady(verdict, change, resolution).later(), later);
        }
    }

    #[test]
    fn windows_are_joined_evenly() {
        let windows: Vec<f64> = (0..125).map(f64::from).collect();
        let joined = joined(&windows);
        assert_eq!((joined.len(), joined[0], joined[1]), (41, 1.0, 4.0));
    }
}
