//! A check of the store by its behaviour: a model of it under random steps, processes that die by
//! SIGKILL in the middle of their writes, and a long run. Everything follows from a seed, except
//! the moment of a kill and what clocks say.

mod kills;
mod model;
mod page;
mod soak;

use std::time::Duration;

use crate::error::StoreError;

pub use kills::{Job, job};
pub use page::{page_of, page_of_length};
pub use soak::{Soak, Window};

/// What to check, and how much of it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed that all random steps follow from.
    pub seed: u64,
    /// Random steps that are compared with the model: writes, reads, discards, ageing,
    /// recompression, compaction, and a store that is opened again.
    pub steps: u64,
    /// How many processes to kill, one after the other.
    pub kills: u32,
    /// How long the first process lives; each next one lives a little longer.
    pub life: Duration,
    /// Whether pages of equal content share slots.
    pub share: bool,
    /// How long one store is run on afterwards, with two writing threads and the background; zero
    /// skips it.
    pub soak: Duration,
    /// A command line that starts a process which calls [`job`].
    pub job: Job,
}

/// What a check has done and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Steps that were compared with the model.
    pub steps: u64,
    /// Writes among them that were refused for want of space, as they must be.
    pub refused: u64,
    /// Processes that were started and killed.
    pub kills: u32,
    /// Writes that processes had reported as done before they were killed.
    pub acknowledged: u64,
    /// The most pages that were found in the backing file, and not in memory, after a kill.
    pub written_back: u64,
    /// Locks of dead threads that were found and opened.
    pub unlocked: u64,
    /// The measurements of the long run.
    pub soak: Soak,
    /// What is wrong, in sentences; empty if every rule holds.
    pub broken: Vec<String>,
}

impl Outcome {
    /// Whether every rule held, so far as it was checked.
    pub fn holds(&self) -> bool {
        self.broken.is_empty()
    }
}

/// Why a check came to no judgement.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The store could not be made.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A process could not be started, ended by itself, or reported something that is not a write;
    /// or no process reported any write.
    #[error("a process of the check: {0}")]
    Job(String),
    /// A thread panicked; its message is on standard error.
    #[error("a thread of the check panicked")]
    Panicked,
}

/// Runs all parts of the check until `stop` returns true or all is done. Parts after one that found
/// something are skipped.
///
/// # Errors
/// If there is no memory, or a process cannot be started or ends by itself, or none reports a write
/// before it is killed. Faults of the store are in the outcome.
pub fn run(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<Outcome, CheckError> {
    let mut outcome = Outcome::default();
    model::run(plan, stop, &mut outcome)?;
    if outcome.holds() && !stop() {
        kills::run(plan, stop, &mut outcome)?;
    }
    if outcome.holds() && !stop() && plan.soak > Duration::ZERO {
        soak::run(plan, stop, &mut outcome)?;
    }
    Ok(outcome)
}
