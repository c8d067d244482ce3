//! Tables of metrics: one metric a row, systems side by side, and the best speed-up with its
//! verdict.

use dyno_record::{CasePlan, Table, TableRow};

use super::cell::{Cell, FilledTable, figure_cell};
use super::figure::Ratio;
use super::pairing::ratio_between;
use super::report::Report;
use crate::units::{counted, number, ratio_range, ratio_text, unit_of, verdict_word};

/// A system and the name that it has in this table: `dyno as true-zero-copy`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) system: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> Named<'a> {
    /// A system under its own name.
    pub(crate) fn plain(system: &'a str) -> Named<'a> {
        Named {
            system,
            name: system,
        }
    }
}

/// The columns of a table as systems.
pub(crate) fn named(columns: &[String]) -> Vec<Named<'_>> {
    let columns = columns.iter().filter(|column| *column != "seed");
    columns
        .map(|column| {
            let (system, name) = column.split_once(" as ").unwrap_or((column, column));
            Named { system, name }
        })
        .collect()
}

/// Fills a table of metrics.
pub(crate) fn fill(table: &Table, report: &Report) -> FilledTable {
    let systems = named(&table.columns);
    let with_seed = table.columns.iter().any(|column| column == "seed");
    let mut notes = Vec::new();
    let mut rows = Vec::new();
    for row in &table.rows {
        match report.cases.iter().find(|c| c.plan.name == row.case) {
            Some(case) => {
                let mut cells = cells(row, &case.plan, &systems, report);
                if with_seed {
                    cells.push(seed_cell(&row.seed));
                }
                rows.push(cells);
            }
            None => notes.push(format!("{}: case {} was not run", row.label, row.case)),
        }
    }
    let mut columns = vec![String::new()];
    columns.extend(systems.iter().map(|named| named.name.to_owned()));
    columns.extend(["best speed-up".to_owned(), "verdict".to_owned()]);
    if with_seed {
        columns.push("seed document".to_owned());
    }
    FilledTable {
        title: table.title.clone(),
        columns,
        rows,
        notes,
    }
}

fn cells(row: &TableRow, case: &CasePlan, systems: &[Named<'_>], report: &Report) -> Vec<Cell> {
    let metric = row.metric.as_deref().unwrap_or(&case.metric);
    let mut cells = vec![Cell::text(&row.label)];
    cells.extend(systems.iter().map(|named| {
        let hung = report.trouble_count(&case.name, named.system);
        match report.figure(&case.name, named.system, metric) {
            Some(figure) => figure_cell(figure),
            None if hung > 0 => Cell {
                loud: true,
                ..Cell::text(format!("failed or hung {}", counted(hung as u64, "time")))
            },
            None => Cell::none("no sample states it"),
        }
    }));
    let best = best_of(report, case, metric, systems);
    match best {
        // A ratio in this cell would be read as a speed-up, so it is printed only where the verdict
        // shows one. The verdict beside it says what is known otherwise.
        Some((name, ratio)) if ratio.verdict == "faster" => {
            let range = ratio_range(ratio.low, ratio.high);
            let title = format!("{range} over {} blocks", ratio.blocks);
            cells.push(Cell::number(
                format!("{} {name}", ratio_text(ratio.ratio)),
                title,
            ));
            cells.push(verdict_cell(&ratio, case, metric));
        }
        Some((_, ratio)) => {
            cells.push(Cell::none("no speed-up is shown"));
            cells.push(verdict_cell(&ratio, case, metric));
        }
        None => cells.extend([
            Cell::none("nothing to compare with"),
            Cell::none("nothing to compare with"),
        ]),
    }
    cells
}

fn verdict_cell(ratio: &Ratio, case: &CasePlan, metric: &str) -> Cell {
    Cell {
        title: ratio.reason.clone(),
        ..Cell::text(verdict_word(
            ratio.verdict,
            &unit_of(case, metric).0,
            metric,
        ))
    }
}

/// The system that is farthest ahead of the first. One whose lead is shown stands before one whose
/// lead is not, however large that seems.
fn best_of<'a>(
    report: &Report,
    case: &CasePlan,
    metric: &str,
    systems: &[Named<'a>],
) -> Option<(&'a str, Ratio)> {
    let (base, others) = systems.split_first()?;
    let ratios = others.iter().filter_map(|named| {
        let pair = (named.system, base.system);
        let ratio = ratio_between(report, case, metric, pair)?;
        Some((named.name, ratio))
    });
    let rank = |ratio: &Ratio| (ratio.verdict == "faster", ratio.ratio);
    ratios.max_by(|a, b| {
        let (a, b) = (rank(&a.1), rank(&b.1));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

fn seed_cell(seed: &[f64]) -> Cell {
    if seed.is_empty() {
        return Cell::none("the seed document has no such figure");
    }
    let texts: Vec<String> = seed.iter().map(|value| number(*value)).collect();
    Cell::number(
        texts.join(" / "),
        "in the order of the columns, on its machine",
    )
}
