//! What a load tells when it is done.

use std::path::PathBuf;

use super::target::Before;
use crate::Error;

/// What became of all inputs.
#[derive(Debug)]
pub struct LoadReport {
    /// One report for each input, in their order.
    pub archives: Vec<ArchiveReport>,
    /// Wall seconds, from opening the table to its last commit.
    pub seconds: f64,
}

/// What became of one input.
#[derive(Debug)]
pub struct ArchiveReport {
    /// The input.
    pub path: PathBuf,
    /// Its identity in the table.
    pub identity: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Oddities that did not stop it.
    pub warnings: Vec<String>,
    /// Where the time went.
    pub stages: StageSeconds,
    /// Wall seconds.
    pub seconds: f64,
}

/// How an input ended.
#[derive(Debug)]
pub enum Outcome {
    /// It is in the table.
    Loaded {
        /// Good rows.
        rows: u64,
        /// Rows in quarantine.
        bad_rows: u64,
        /// Blank lines, which are no rows.
        blank_lines: u64,
        /// Bytes of the input as stored.
        source_bytes: u64,
        /// Bytes in the table.
        table_bytes: u64,
        /// What the table had of it before.
        before: Before,
        /// What a database did meanwhile; nothing for a directory.
        server: Option<ServerReport>,
    },
    /// The table has these very bytes already.
    AlreadyThere {
        /// Rows it has of them.
        rows: u64,
    },
    /// It is not in the table; what the table had of it before still is.
    Failed(Error),
}

/// What a database did while it took an archive.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct ServerReport {
    /// Blocks inserted.
    pub blocks: u64,
    /// Blocks that were sent again, after an error that promised no better than "perhaps".
    pub resent: u64,
    /// Seconds in which nothing was sent because the server was behind with merging.
    pub merge_wait_s: f64,
    /// The most parts that a partition of the stage was seen to have.
    pub parts_most: u64,
}

/// Busy seconds of each stage; stages on different threads overlap.
#[derive(Debug, Default, Clone, Copy)]
pub struct StageSeconds {
    /// Reading and inflating.
    pub inflate: f64,
    /// Scanning fields into columns.
    pub parse: f64,
    /// Columns to pages.
    pub encode: f64,
    /// Writing, and waiting for stable storage.
    pub write: f64,
}

impl StageSeconds {
    /// The stage that took longest, and its seconds.
    pub fn longest(&self) -> (&'static str, f64) {
        [
            ("inflate", self.inflate),
            ("parse", self.parse),
            ("encode", self.encode),
            ("write", self.write),
        ]
        .into_iter()
        .fold(("inflate", 0.0), |longest, stage| {
            if stage.1 > longest.1 { stage } else { longest }
        })
    }

    /// Adds another's seconds.
    pub fn add(&mut self, other: &StageSeconds) {
        self.inflate += other.inflate;
        self.parse += other.parse;
        self.encode += other.encode;
        self.write += other.write;
    }
}

impl LoadReport {
    /// Rows loaded by this call.
    pub fn rows(&self) -> u64 {
        self.archives
            .iter()
            .map(|archive| match archive.outcome {
                Outcome::Loaded { rows, .. } => rows,
                _ => 0,
            })
            .sum()
    }

    /// Stages of all archives together.
    pub fn stages(&self) -> StageSeconds {
        let mut sum = StageSeconds::default();
        for archive in &self.archives {
            sum.add(&archive.stages);
        }
        sum
    }

    /// The inputs that are not in the table, with the reason.
    pub fn failures(&self) -> impl Iterator<Item = (&ArchiveReport, &Error)> {
        self.archives
            .iter()
            .filter_map(|archive| match &archive.outcome {
                Outcome::Failed(error) => Some((archive, error)),
                _ => None,
            })
    }
}
