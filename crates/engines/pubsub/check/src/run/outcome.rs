//! The result of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::options::Mode;
use super::soak::Soaked;
use crate::checker::Verdict;
use crate::nemesis::Fault;

/// The result of a run, as `--json` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Whether no rule was broken, nothing ended by itself, and all stayed flat if that was asked.
    pub holds: bool,
    /// Which interface of the engine was judged.
    pub mode: Mode,
    /// How many servers there were.
    pub nodes: usize,
    /// The seed that the plan was drawn from.
    pub seed: u64,
    /// How many faults of each kind hit something.
    pub faults: BTreeMap<Fault, u64>,
    /// Connections that were cut after a commit went out and before its answer came.
    pub cut_in_commit: u64,
    /// Those of them that were between clients and brokers.
    pub cut_at_brokers: u64,
    /// How often a partition got another broker, its first one included.
    pub lease_changes: u64,
    /// Messages, their outcomes, deliveries, and broken rules.
    pub verdict: Verdict,
    /// Length of the run from the first message to the last answer, seconds.
    pub seconds: f64,
    /// The longest time without any acknowledgement, milliseconds.
    pub stall_longest_ms: f64,
    /// What went wrong besides broken rules.
    pub troubles: Vec<String>,
    /// What was not done, and why.
    pub left_out: Vec<String>,
    /// The history, which a failed run leaves behind.
    pub history: Option<PathBuf>,
    /// What the soak has shown.
    pub soak: Option<Soaked>,
}

impl Outcome {
    /// How many faults hit something.
    pub fn kills(&self) -> u64 {
        self.faults.values().sum()
    }
}
