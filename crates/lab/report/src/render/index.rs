//! The first page of a site as its template sees it. The site fills it, and the printing reads it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::view::{RowView, WithdrawnView};

/// The first page as its template sees it.
#[derive(Serialize)]
pub(crate) struct Index {
    pub(crate) records: Vec<Entry>,
    pub(crate) machines: BTreeSet<String>,
    pub(crate) engines: BTreeSet<String>,
    pub(crate) suites: BTreeSet<String>,
    pub(crate) withdrawn: usize,
    pub(crate) damaged: Vec<String>,
}

/// One record on the first page.
#[derive(Serialize)]
pub(crate) struct Entry {
    pub(crate) page: String,
    pub(crate) name: String,
    pub(crate) machine: String,
    pub(crate) engines: BTreeSet<String>,
    pub(crate) suite: String,
    pub(crate) size: String,
    pub(crate) title: String,
    pub(crate) started_at: String,
    pub(crate) revision: String,
    pub(crate) standing: &'static str,
    pub(crate) withdrawn: Option<WithdrawnView>,
    pub(crate) summary: String,
    pub(crate) columns: [&'static str; 7],
    pub(crate) rows: Vec<RowView>,
    pub(crate) command: String,
}
