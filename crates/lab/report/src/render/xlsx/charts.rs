//! A chart for each case and for each sweep, beside the numbers that it draws.

use rust_xlsxwriter::{Chart, ChartType, Workbook, Worksheet, XlsxError};

use super::super::plots::{Plots, Sweep};
use super::sheet::{clipped, head_format, number_format, title};
use crate::model::{CaseReport, Report};

/// Rows that a chart covers.
const CHART_ROWS: u32 = 16;
const CHART_PIXELS: (u32, u32) = (620, 300);

/// The systems of every case, as bars of their medians.
pub(super) fn add_cases(
    workbook: &mut Workbook,
    report: &Report,
    name: &str,
) -> Result<(), XlsxError> {
    let sheet = new_sheet(
        workbook,
        name,
        "case",
        &["system", "median", "low", "high", "n"],
    )?;
    let mut row = 1;
    for case in &report.cases {
        if case.series.iter().any(|series| series.median.is_some()) {
            row = add_case(sheet, case, name, row)?;
        }
    }
    Ok(())
}

fn add_case(
    sheet: &mut Worksheet,
    case: &CaseReport,
    name: &str,
    first: u32,
) -> Result<u32, XlsxError> {
    let plan = &case.plan;
    for (row, series) in (first..).zip(&case.series) {
        sheet.write_string(row, 0, clipped(&plan.name))?;
        sheet.write_string(row, 1, clipped(&series.system))?;
        write_number(sheet, row, 2, series.median, &plan.unit)?;
        write_number(sheet, row, 3, series.low, &plan.unit)?;
        write_number(sheet, row, 4, series.high, &plan.unit)?;
        write_number(sheet, row, 5, Some(series.dots.len() as f64), "")?;
    }
    // The caller passes only cases with a median, so there is at least one series.
    let last = first + case.series.len() as u32 - 1;
    let mut chart = Chart::new(ChartType::Bar);
    chart
        .add_series()
        .set_name(&title(&plan.metric))
        .set_categories((name, first, 1, last, 1))
        .set_values((name, first, 2, last, 2));
    chart.title().set_name(&title(&plan.title));
    // The axis of a bar chart's values lies below.
    chart
        .y_axis()
        .set_name(&title(&format!("{} ({})", plan.metric, plan.unit)));
    chart.x_axis().set_reverse();
    chart.legend().set_hidden();
    chart.set_width(CHART_PIXELS.0).set_height(CHART_PIXELS.1);
    sheet.insert_chart(first, 7, &chart)?;
    Ok(first + CHART_ROWS.max(case.series.len() as u32 + 1))
}

/// Lines over the parameter that cases differ in.
pub(super) fn add_sweeps(
    workbook: &mut Workbook,
    report: &Report,
    name: &str,
) -> Result<(), XlsxError> {
    let sweeps = Plots::from_report(report).sweeps;
    if sweeps.is_empty() {
        return Ok(());
    }
    let sheet = new_sheet(workbook, name, "sweep", &["system", "parameter", "median"])?;
    let mut row = 1;
    for sweep in &sweeps {
        row = add_sweep(sheet, sweep, name, row)?;
    }
    Ok(())
}

fn add_sweep(
    sheet: &mut Worksheet,
    sweep: &Sweep,
    name: &str,
    first: u32,
) -> Result<u32, XlsxError> {
    let mut chart = Chart::new(ChartType::ScatterStraightWithMarkers);
    let mut row = first;
    for line in sweep.series.iter().filter(|line| !line.points.is_empty()) {
        let begin = row;
        for point in &line.points {
            sheet.write_string(row, 0, clipped(&sweep.title))?;
            sheet.write_string(row, 1, clipped(&line.system))?;
            write_number(sheet, row, 2, Some(point.x), "")?;
            write_number(sheet, row, 3, Some(point.y), &sweep.unit)?;
            row += 1;
        }
        chart
            .add_series()
            .set_name((name, begin, 1))
            .set_categories((name, begin, 2, row - 1, 2))
            .set_values((name, begin, 3, row - 1, 3));
    }
    if row == first {
        return Ok(first);
    }
    chart.title().set_name(&title(&sweep.title));
    chart.x_axis().set_name(&title(&sweep.axis));
    chart.y_axis().set_name(&title(&sweep.unit));
    chart.set_width(CHART_PIXELS.0).set_height(CHART_PIXELS.1);
    sheet.insert_chart(first, 7, &chart)?;
    Ok((row + 1).max(first + CHART_ROWS))
}

fn new_sheet<'a>(
    workbook: &'a mut Workbook,
    name: &str,
    first: &str,
    others: &[&str],
) -> Result<&'a mut Worksheet, XlsxError> {
    let sheet = workbook.add_worksheet().set_name(name)?;
    let head = head_format();
    for (column, text) in (0..).zip([first].iter().chain(others)) {
        sheet.write_string_with_format(0, column, *text, &head)?;
        sheet.set_column_width(column, if column == 0 { 34.0 } else { 16.0 })?;
    }
    sheet.set_freeze_panes(1, 0)?;
    Ok(sheet)
}

fn write_number(
    sheet: &mut Worksheet,
    row: u32,
    column: u16,
    value: Option<f64>,
    unit: &str,
) -> Result<(), XlsxError> {
    if let Some(value) = value {
        sheet.write_number_with_format(row, column, value, &number_format(value, unit, false))?;
    }
    Ok(())
}
