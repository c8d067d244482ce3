//! The table of what ran inside our own program beside our default: other modes of it, and the
//! libraries of others that it can call instead of its own code. Page one knows only peers.

use dyno_record::Role;

use super::cell::{Cell, FilledTable, figure_cell};
use super::report::Report;
use super::{CaseReport, OURS};
use crate::units::{ratio_range, ratio_text, verdict_word};

/// A row for each variant and library baseline of each case that was run; `None` when no case has
/// one.
pub(crate) fn table(report: &Report) -> Option<FilledTable> {
    let rows: Vec<Vec<Cell>> = report
        .cases
        .iter()
        .flat_map(|case| case.plan.systems.iter().map(move |system| (case, system)))
        .filter_map(|(case, system)| row(report, case, system))
        .collect();
    (!rows.is_empty()).then(|| FilledTable {
        title: "Variants and libraries inside dyno".to_owned(),
        columns: [
            "case",
            "as",
            "role",
            "figure",
            "dyno",
            "dyno ÷ it",
            "verdict on dyno",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        notes: vec![
            "A variant is dyno in another mode, which often does less work; a library baseline is \
             another project's code inside dyno. Neither is a peer, so page one names neither."
                .to_owned(),
        ],
    })
}

fn row(report: &Report, case: &CaseReport, system: &str) -> Option<Vec<Cell>> {
    let plan = &case.plan;
    let role = match plan.role(system) {
        Role::Variant => "variant",
        Role::Baseline => "library baseline",
        Role::Ours | Role::Experiment | Role::Peer => return None,
    };
    let figure = report.figure(&plan.name, system, &plan.metric)?;
    let ours = report.figure(&plan.name, OURS, &plan.metric)?;
    let ratio = ours.ratio_to.get(system);
    let mut cells = vec![
        Cell::text(&plan.name),
        Cell::text(system),
        Cell::text(role),
        figure_cell(figure),
        figure_cell(ours),
    ];
    cells.extend(match ratio {
        Some(ratio) => [
            Cell::number(ratio_text(ratio.ratio), ratio_range(ratio.low, ratio.high))
                .with_value(ratio.ratio, "x"),
            Cell {
                title: ratio.reason.clone(),
                ..Cell::text(verdict_word(ratio.verdict, &figure.unit, &figure.metric))
            },
        ],
        None => [
            Cell::none("no block has both"),
            Cell::none("no block has both"),
        ],
    });
    Some(cells)
}
