//! The samples behind a plot.

use dyno_record::{Arm, CasePlan, Outcome, Run, Sample};
use serde::Serialize;

use super::OURS;
use super::figure::figures_of_system;
use super::samples::{group, value_of};

/// The samples of one system in one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The system; the control arm is `dyno again`.
    pub system: String,
    /// Whether this is the control arm.
    pub control: bool,
    /// Median, absent when none ended well.
    pub median: Option<f64>,
    /// Lower end of the spread, as [`super::Figure::low`] has it; absent for the control arm.
    pub low: Option<f64>,
    /// Upper end of the spread; absent for the control arm.
    pub high: Option<f64>,
    /// Every sample that ended well.
    pub dots: Vec<Dot>,
    /// Invocations that failed or hung, which have no dot.
    pub troubles: usize,
}

/// One sample of a plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dot {
    /// Value of the metric that ranks the case.
    pub value: f64,
    /// The block, by which the dots of two systems are paired.
    pub block: u32,
    /// Seconds since the run started.
    pub at_s: f64,
    /// Windows of the ranking metric inside the invocation.
    pub windows: Vec<f64>,
}

/// The series of a case: systems in the order of the plan, the control arm last.
pub(crate) fn series_of(run: &Run, case: &CasePlan, samples: &[Sample]) -> Vec<Series> {
    let mut all: Vec<Series> = case
        .systems
        .iter()
        .map(|system| series(run, case, samples, system, Arm::Main))
        .collect();
    if !group(samples, &case.name, OURS, Arm::Control).is_empty() {
        all.push(series(run, case, samples, OURS, Arm::Control));
    }
    all
}

fn series(run: &Run, case: &CasePlan, samples: &[Sample], system: &str, arm: Arm) -> Series {
    let members = group(samples, &case.name, system, arm);
    let dots: Vec<Dot> = members
        .iter()
        .filter(|s| s.outcome == Outcome::Done)
        .filter_map(|s| {
            Some(Dot {
                value: value_of(s, &case.metric)?,
                block: s.block,
                at_s: s.at_s,
                windows: s.windows.clone(),
            })
        })
        .collect();
    let control = arm == Arm::Control;
    let figure = match arm {
        Arm::Main => figures_of_system(run, case, system, samples)
            .into_iter()
            .find(|f| f.metric == case.metric),
        Arm::Control | Arm::Beside => None,
    };
    let values: Vec<f64> = dots.iter().map(|dot| dot.value).collect();
    Series {
        system: if control {
            format!("{system} again")
        } else {
            system.to_owned()
        },
        control,
        median: dyno_stats::median(&values).ok(),
        low: figure.as_ref().and_then(|f| f.low),
        high: figure.as_ref().and_then(|f| f.high),
        troubles: members
            .iter()
            .filter(|s| s.outcome != Outcome::Done)
            .count(),
        dots,
    }
}
