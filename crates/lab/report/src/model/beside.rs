//! What the load beside a run costs: each system beside it against itself alone.

use dyno_record::{Arm, CasePlan, Sample};

use super::cell::{Cell, FilledTable, figure_cell};
use super::figure::figures_of_system;
use super::pairing::judged;
use super::report::Report;
use super::{Figure, Ratio};
use crate::units::{ratio_range, ratio_text};

/// Heading of the table.
pub(crate) const TITLE: &str = "What the load beside the run costs";

/// Whether the load of the run was there for samples of their own. Earlier versions kept it running
/// beside all of them.
pub(crate) fn is_interleaved(samples: &[Sample]) -> bool {
    samples.iter().any(|sample| sample.arm == Arm::Beside)
}

/// The samples beside the load as if they were a run of their own, so that figures of them are made
/// by the rules of all others.
fn as_main(samples: &[Sample]) -> Vec<Sample> {
    let beside = samples.iter().filter(|sample| sample.arm == Arm::Beside);
    beside
        .map(|sample| Sample {
            arm: Arm::Main,
            ..sample.clone()
        })
        .collect()
}

/// A row for each system of each case that ran beside the load; `None` when none did.
pub(crate) fn table(report: &Report, samples: &[Sample]) -> Option<FilledTable> {
    let load = report.run.beside.as_ref()?;
    let beside = as_main(samples);
    if beside.is_empty() {
        return None;
    }
    let places = report.cases.iter().flat_map(|case| {
        let systems = case.plan.systems.iter();
        systems.map(move |system| (&case.plan, system))
    });
    let rows: Vec<Vec<Cell>> = places
        .map(|(case, system)| row(report, case, system, &beside))
        .collect();
    Some(FilledTable {
        title: TITLE.to_owned(),
        columns: [
            "case",
            "system",
            "alone",
            "beside the load",
            "beside ÷ alone",
            "verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        notes: vec![format!(
            "The load is: {load}. Each block has each system once alone and once beside it, and \
             below 1 a system does worse beside it. All other tables are of the samples alone."
        )],
    })
}

fn row(report: &Report, case: &CasePlan, system: &str, beside: &[Sample]) -> Vec<Cell> {
    let loaded = figures_of_system(&report.run, case, system, beside);
    let loaded: Option<&Figure> = loaded.iter().find(|figure| figure.metric == case.metric);
    let shown = |figure: Option<&Figure>| {
        figure.map_or_else(|| Cell::none("no invocation ended well"), figure_cell)
    };
    let mut cells = vec![
        Cell::text(&case.name),
        Cell::text(system),
        shown(report.figure(&case.name, system, &case.metric)),
        shown(loaded),
    ];
    cells.extend(match cost(report, case, system, beside) {
        Some(ratio) => [
            Cell::number(
                format!(
                    "{} ({})",
                    ratio_text(ratio.ratio),
                    ratio_range(ratio.low, ratio.high)
                ),
                format!("over {} blocks", ratio.blocks),
            )
            .with_value(ratio.ratio, "x"),
            Cell {
                title: ratio.reason.clone(),
                ..Cell::text(ratio.verdict)
            },
        ],
        None => [
            Cell::none("no block has both"),
            Cell::none("no block has both"),
        ],
    });
    cells
}

/// The system beside the load against itself alone, block by block; `None` when no block has both.
fn cost(report: &Report, case: &CasePlan, system: &str, beside: &[Sample]) -> Option<Ratio> {
    let sides = [(beside, system), (report.samples.as_slice(), system)];
    judged(report, case, &case.metric, sides)
}
