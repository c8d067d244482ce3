//! Printing a report. Every form says the same; all text of a record is hostile until escaped.

mod csv;
mod html;
mod index;
mod json;
mod markdown;
mod plots;
mod raw;
mod rich_text;
mod view;
mod xlsx;

pub(crate) use index::{Entry, Index};
pub(crate) use markdown::markdown_cell;
pub(crate) use view::{WithdrawnView, rows};

use minijinja::syntax::SyntaxConfig;
use serde::Serialize;

use crate::error::ReportError;
use crate::model::Report;

/// The page of a record in a site, with a link back to `home`.
pub(crate) fn print_page(report: &Report, home: &str) -> Result<String, ReportError> {
    html::print(report, Some(home))
}

/// The first page of a site.
pub(crate) fn print_index(index: &Index) -> Result<String, ReportError> {
    html::print_index(index)
}

/// The page of a history. Its template knows what `page` holds, which the history alone fills.
pub(crate) fn print_history(page: &impl Serialize) -> Result<String, ReportError> {
    html::print_history(page)
}

/// A line that holds a block tag alone leaves nothing behind.
fn template_syntax() -> Result<SyntaxConfig, minijinja::Error> {
    SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
}

impl Report {
    /// The report as Markdown.
    ///
    /// # Errors
    /// Only when a template is at fault.
    pub fn to_markdown(&self) -> Result<String, ReportError> {
        markdown::print(self)
    }

    /// The report as one HTML file that needs nothing else: no network, no server.
    ///
    /// # Errors
    /// Only when a template is at fault.
    pub fn to_html(&self) -> Result<String, ReportError> {
        html::print(self, None)
    }

    /// Every invocation as CSV, a line for each of its metrics, all digits kept.
    pub fn to_csv(&self) -> String {
        csv::print(self)
    }

    /// The report as `report.json` holds it, and as `--json` prints it.
    ///
    /// # Errors
    /// When a number is not one that JSON has.
    pub fn to_json(&self) -> Result<String, ReportError> {
        json::print(self)
    }

    /// The report as an Excel workbook, whose numbers are numbers and whose charts are the
    /// program's own.
    ///
    /// # Errors
    /// When the workbook cannot hold the report: more rows than a sheet has.
    pub fn to_xlsx(&self) -> Result<Vec<u8>, ReportError> {
        xlsx::print(self)
    }
}
