//! The report as an Excel workbook: a summary, the plan's tables, every figure, and charts that can
//! be edited. All text of a record is written as strings, never as formulas or links.

mod charts;
mod figures;
mod sheet;
mod summary;
mod tables;

use rust_xlsxwriter::{DocProperties, ExcelDateTime, Workbook};

use crate::error::ReportError;
use crate::model::Report;

pub(super) fn print(report: &Report) -> Result<Vec<u8>, ReportError> {
    let mut workbook = Workbook::new();
    let mut properties = DocProperties::new().set_title(sheet::clipped(&report.run.plan.title));
    // The same record gives the same bytes: the date is that of the run.
    let started = report.run.started_at.as_str();
    let created =
        ExcelDateTime::parse_from_str(started).or_else(|_| ExcelDateTime::from_ymd(2000, 1, 1))?;
    properties = properties.set_creation_datetime(&created);
    workbook.set_properties(&properties);
    let mut names = sheet::Names::default();
    summary::add(&mut workbook, report, &names.unique("summary"))?;
    for table in &report.tables {
        tables::add(&mut workbook, table, &names.unique(&table.title))?;
    }
    figures::add(&mut workbook, report, &names.unique("figures"))?;
    charts::add_cases(&mut workbook, report, &names.unique("cases"))?;
    charts::add_sweeps(&mut workbook, report, &names.unique("sweeps"))?;
    Ok(workbook.save_to_buffer()?)
}
