//! Why a report could not be printed.

use thiserror::Error;

/// All are faults of this program, not of the record: report them.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A template asked for something that the report does not have.
    #[error("template {name}: {source}")]
    Template {
        /// The template's file name.
        name: &'static str,
        /// What it asked for, and where.
        source: minijinja::Error,
    },
    /// The report cannot be written as JSON.
    #[error("report as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The report does not fit into a workbook.
    #[error("report as workbook: {0}")]
    Workbook(#[from] rust_xlsxwriter::XlsxError),
}
