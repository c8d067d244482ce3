//! The report of a load.

use std::path::PathBuf;

use super::target::Before;
use crate::Error;

/// The results of all inputs.
#[derive(Debug)]
pub struct LoadReport {
    /// One report for each input, in their order.
    pub archives: Vec<ArchiveReport>,
    /// Wall seconds, from opening the table to its last commit.
    pub seconds: f64,
}

/// The result of one input.
#[derive(Debug)]
pub struct ArchiveReport {
    /// Path of the input, or a stream's name.
    pub path: PathBuf,
    /// The archive's identity in the table.
    pub identity: String,
    /// Whether it was loaded, was there already, or failed.
    pub outcome: Outcome,
    /// Oddities that did not stop the load, one sentence each.
    pub warnings: Vec<String>,
    /// Busy seconds of each stage of this input.
    pub stages: StageSeconds,
    /// Wall seconds that this input took.
    pub seconds: f64,
}

/// The outcome of an input.
#[derive(Debug)]
pub enum Outcome {
    /// Its rows are in the table and committed.
    Loaded {
        /// Rows that were put into the table.
        rows: u64,
        /// Rows that were put into quarantine.
        bad_rows: u64,
        /// Blank lines, which count neither as good nor as bad.
        blank_lines: u64,
        /// Bytes of the input as stored, that is compressed.
        source_bytes: u64,
        /// Bytes that its rows take in the table.
        table_bytes: u64,
        /// What the table had of the archive before.
        before: Before,
        /// Statistics of a database target; `None` for a directory.
        server: Option<ServerReport>,
    },
    /// The table has the rows of these very bytes already.
    AlreadyThere {
        /// Rows that the table has of them.
        rows: u64,
    },
    /// It was not loaded; what the table had of it before is still there.
    Failed(Error),
}

/// Statistics of a database while it received an archive.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct ServerReport {
    /// Blocks inserted, not counting repetitions.
    pub blocks: u64,
    /// Blocks sent again, after an error that left open whether they had arrived.
    pub resent: u64,
    /// Seconds without sending because the server was behind with merging.
    pub merge_wait_s: f64,
    /// The largest number of parts seen in a partition of the stage.
    pub parts_most: u64,
}

/// Busy seconds of each stage; stages on different threads overlap.
#[derive(Debug, Default, Clone, Copy)]
pub struct StageSeconds {
    /// Seconds of reading and inflating.
    pub inflate: f64,
    /// Seconds of scanning fields into columns.
    pub parse: f64,
    /// Seconds of encoding columns as pages.
    pub encode: f64,
    /// Seconds of writing, and of waiting for stable storage.
    pub write: f64,
}

impl StageSeconds {
    /// The stages with their seconds, in the order in which a row passes them.
    pub fn each(&self) -> [(&'static str, f64); 4] {
        [
            ("inflate", self.inflate),
            ("parse", self.parse),
            ("encode", self.encode),
            ("write", self.write),
        ]
    }

    /// The stage that took longest, and its seconds.
    pub fn longest(&self) -> (&'static str, f64) {
        self.each()
            .into_iter()
            .fold(("inflate", 0.0), |longest, stage| {
                if stage.1 > longest.1 { stage } else { longest }
            })
    }

    /// Adds the seconds of another report.
    pub fn add(&mut self, other: &StageSeconds) {
        self.inflate += other.inflate;
        self.parse += other.parse;
        self.encode += other.encode;
        self.write += other.write;
    }
}

impl LoadReport {
    /// Rows that this call loaded, without those already there.
    pub fn rows(&self) -> u64 {
        self.archives
            .iter()
            .map(|archive| match archive.outcome {
                Outcome::Loaded { rows, .. } => rows,
                _ => 0,
            })
            .sum()
    }

    /// Stage seconds of all archives together.
    pub fn stages(&self) -> StageSeconds {
        let mut sum = StageSeconds::default();
        for archive in &self.archives {
            sum.add(&archive.stages);
        }
        sum
    }

    /// The inputs that are not in the table, with the reasons.
    pub fn failures(&self) -> impl Iterator<Item = (&ArchiveReport, &Error)> {
        self.archives
            .iter()
            .filter_map(|archive| match &archive.outcome {
                Outcome::Failed(error) => Some((archive, error)),
                _ => None,
            })
    }
}
