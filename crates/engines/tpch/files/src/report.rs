//! The report of a job, which has the files that it wrote and those that it kept.

use std::path::PathBuf;

use dyno_tpch::Table;
use serde::{Deserialize, Serialize};

use crate::stored;

/// The files of a job, with the time that it took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// All files, those that were kept first and the others in the order in which they were begun.
    pub files: Vec<FileReport>,
    /// Seconds from the start of the job to the last file, those for the text pool included.
    pub seconds: f64,
    /// How many of these passed before the first row.
    pub pool_seconds: f64,
}

/// A file that was written or kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileReport {
    /// The table whose rows it has.
    #[serde(with = "stored::text")]
    pub table: Table,
    /// Its path below the job's place.
    pub name: PathBuf,
    /// The number of rows in it.
    pub rows: u64,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// Seconds from its first piece to its final name. Several files are written at the same time.
    pub seconds: f64,
    /// The way in which its bytes were written, and why that one was chosen.
    pub sink: String,
    /// Whether it was there already, from an earlier run of the same job.
    pub kept: bool,
}

impl Report {
    /// The rows of all files that were written. Kept files are not counted.
    pub fn rows(&self) -> u64 {
        self.written().map(|file| file.rows).sum()
    }

    /// The bytes of all files that were written. Kept files are not counted.
    pub fn bytes(&self) -> u64 {
        self.written().map(|file| file.bytes).sum()
    }

    fn written(&self) -> impl Iterator<Item = &FileReport> {
        self.files.iter().filter(|file| !file.kept)
    }
}
