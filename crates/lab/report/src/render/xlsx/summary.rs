//! The first sheet: headline with its verdicts, findings, environment, limits.

use rust_xlsxwriter::{Workbook, Worksheet, XlsxError};

use super::super::view::environment;
use super::sheet::{clipped, number_format, title_format, write_rows};
use crate::headline::headline;
use crate::model::{Report, best_known};

/// Widths of the columns, in characters.
const WIDTHS: [f64; 7] = [28.0, 30.0, 26.0, 24.0, 12.0, 20.0, 40.0];

pub(super) fn add(workbook: &mut Workbook, report: &Report, name: &str) -> Result<(), XlsxError> {
    let sheet = workbook.add_worksheet().set_name(name)?;
    for (column, width) in (0..).zip(WIDTHS) {
        sheet.set_column_width(column, width)?;
    }
    let plan = &report.run.plan;
    sheet.write_string_with_format(0, 0, clipped(&plan.title), &title_format())?;
    sheet.set_freeze_panes(1, 0)?;
    let about = format!(
        "Suite {}, size {}, started {}, {}.",
        plan.suite,
        format!("{:?}", plan.size).to_lowercase(),
        report.run.started_at,
        match &report.run.finished_at {
            Some(at) => format!("ended {at}"),
            None => "did not end: these are the samples so far".to_owned(),
        }
    );
    sheet.write_string(1, 0, clipped(&about))?;
    sheet.write_string(2, 0, clipped(&plan.purpose))?;
    let headline = headline(report);
    let withdrawn = report
        .withdrawn
        .as_ref()
        .map_or(String::new(), |withdrawal| {
            format!("{}. {} ", withdrawal.what, withdrawal.why)
        });
    sheet.write_string(3, 0, clipped(&(withdrawn + &headline.summary)))?;
    let rows = headline.rows.into_iter().map(|row| row.cells);
    let mut row = write_rows(sheet, 4, headline.columns, rows)?;
    for note in &headline.notes {
        sheet.write_string(row, 0, clipped(note))?;
        row += 1;
    }
    row += 1;
    let findings = report.findings.iter().map(|finding| {
        [
            format!("{:?} {}", finding.severity, finding.rule).to_lowercase(),
            finding.subject.clone(),
            finding.seen.clone(),
            finding.why.clone(),
            finding.advice.clone(),
        ]
    });
    let heads = ["finding", "subject", "seen", "why", "advice"];
    row = write_rows(sheet, row, heads, findings)?;
    let troubles = report.troubles.iter().map(|trouble| {
        [
            trouble.kind.to_owned(),
            trouble.case.clone(),
            trouble.system.clone(),
            format!("block {}", trouble.block),
            trouble.reason.clone(),
        ]
    });
    let heads = ["failure", "case", "system", "block", "reason"];
    row = write_rows(sheet, row, heads, troubles)?;
    let facts = environment(report).into_iter();
    let facts = facts.map(|(name, value)| [name, value]);
    row = write_rows(sheet, row, ["environment", "value"], facts)?;
    add_limits(sheet, report, row)
}

/// What the machine can do: the better of our value and an independent tool's.
fn add_limits(sheet: &mut Worksheet, report: &Report, row: u32) -> Result<(), XlsxError> {
    let limits = report.run.limits.iter();
    let rows = limits.clone().map(|limit| {
        let n = format!("n = {}", limit.n);
        [
            limit.name.clone(),
            String::new(),
            limit.unit.clone(),
            n,
            limit.method.clone(),
        ]
    });
    let first = row + 1;
    write_rows(
        sheet,
        row,
        ["limit", "value", "unit", "count", "method"],
        rows,
    )?;
    for (row, limit) in (first..).zip(limits) {
        let value = best_known(limit);
        sheet.write_number_with_format(row, 1, value, &number_format(value, &limit.unit, false))?;
    }
    Ok(())
}
