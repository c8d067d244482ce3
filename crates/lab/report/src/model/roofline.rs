//! How far each system of a case is from the two roofs over its rate: what all processors together
//! would do at its cost, and the limit of the machine. It is the roofline of Williams, Waterman and
//! Patterson (CACM 2009) with processor seconds in the place of bytes: those can be counted on
//! every machine, bytes between processor and memory only by hardware counters.

use dyno_record::{Arm, Better, CasePlan, Outcome};
use serde::Serialize;

use super::report::Report;
use super::samples::group;

/// The roofs of one case and the systems below them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Roofline {
    /// Unit of the rates and of the limit.
    pub unit: String,
    /// Logical processors of the machine: the slope of the first roof.
    pub processors: f64,
    /// The machine's limit in the unit of the metric: the second roof.
    pub limit: Option<f64>,
    /// Systems of which both numbers are known.
    pub points: Vec<RooflinePoint>,
}

/// One system below the roofs; all numbers are medians.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RooflinePoint {
    /// `dyno`, a variant or a peer.
    pub system: String,
    /// Work in one processor second, in the unit of the rate without its time.
    pub per_cpu_s: f64,
    /// The rate that ranks the case.
    pub rate: f64,
    /// Processors that were busy with the work on average.
    pub busy: f64,
}

/// The roofline of a case; nothing where its metric is not a rate, or where no system tells the
/// processor time of its work.
pub(crate) fn for_case(report: &Report, plan: &CasePlan) -> Option<Roofline> {
    if plan.better != Better::Higher || !plan.unit.ends_with("/s") {
        return None;
    }
    let facts = &report.run.machine.facts;
    let (_, processors) = facts.iter().find(|(name, _)| name == "logical cpus")?;
    let mut limit = None;
    let points: Vec<RooflinePoint> = plan
        .compared()
        .filter_map(|system| {
            let figure = report.figure(&plan.name, system, &plan.metric)?;
            limit = limit.or(figure.limit);
            let busy = busy_processors(report, plan, system)?;
            Some(RooflinePoint {
                system: system.clone(),
                per_cpu_s: figure.median / busy,
                rate: figure.median,
                busy,
            })
        })
        .collect();
    (!points.is_empty()).then_some(Roofline {
        unit: plan.unit.clone(),
        processors: processors.parse().ok()?,
        limit,
        points,
    })
}

/// Processors that were busy with the work of a system: the `cpu` that it states itself, by the
/// `time` of the same clock. What the runner sees from outside covers the checks before and after
/// the work too.
fn busy_processors(report: &Report, plan: &CasePlan, system: &str) -> Option<f64> {
    let done = group(&report.samples, &plan.name, system, Arm::Main).into_iter();
    let done = done.filter(|sample| sample.outcome == Outcome::Done);
    let busy: Vec<f64> = done
        .filter_map(|sample| Some(sample.metrics.get("cpu")? / sample.metrics.get("time")?))
        .collect();
    dyno_stats::median(&busy).ok().filter(|busy| *busy > 0.0)
}
