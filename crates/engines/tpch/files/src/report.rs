//! What a job did.

use std::path::PathBuf;

use dyno_tpch::Table;
use serde::{Deserialize, Serialize};

use crate::stored;

/// All files of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// One after the other: those kept first, then in the order in which they were begun.
    pub files: Vec<FileReport>,
    /// Seconds from the order to the last file, the making of the text pool included.
    pub seconds: f64,
    /// Of these, seconds before the first row.
    pub pool_seconds: f64,
}

/// A file, written or kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileReport {
    /// The table.
    #[serde(with = "stored::text")]
    pub table: Table,
    /// Below the job's place.
    pub name: PathBuf,
    /// Rows.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Seconds from its first piece to its final name; files are written side by side.
    pub seconds: f64,
    /// How its bytes went to where they are, and why so.
    pub sink: String,
    /// Whether it was there already, from an earlier run of the same job.
    pub kept: bool,
}

impl Report {
    /// Rows of all files that were written.
    pub fn rows(&self) -> u64 {
        self.written().map(|file| file.rows).sum()
    }

    /// Bytes of all files that were written.
    pub fn bytes(&self) -> u64 {
        self.written().map(|file| file.bytes).sum()
    }

    fn written(&self) -> impl Iterator<Item = &FileReport> {
        self.files.iter().filter(|file| !file.kept)
    }
}
