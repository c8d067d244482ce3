//! Why a report or a site could not be printed.

use std::path::PathBuf;

use dyno_record::RecordError;
use thiserror::Error;

/// Why printing failed. The first three variants are faults of this program and not of the record,
/// so the user should report them.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A template asked for something that the report does not have.
    #[error("template {name}: {source}")]
    Template {
        /// File name of the template, as a fault report needs it.
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
    /// A page could not be written, or the records could not be listed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A site of no records says nothing. Each line says why one could not be read.
    #[error(
        "{path}: has no record that can be read, so there is nothing to make a site of{}",
        lines(damaged)
    )]
    NoRecord {
        /// The folder of the records.
        path: PathBuf,
        /// Why each record could not be read.
        damaged: Vec<String>,
    },
    /// Choose another folder, or remove the page.
    #[error(
        "{path}: is not a page of `dyno site`, so it is not overwritten; choose another directory"
    )]
    NotOurs {
        /// The page that stays as it was.
        path: PathBuf,
    },
}

fn lines(messages: &[String]) -> String {
    let line = |message: &String| format!("\n  {message}");
    messages.iter().map(line).collect()
}
