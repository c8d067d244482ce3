//! A check of the store by what it does: a model of it under random steps, processes that die by
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
    /// From which the steps follow.
    pub seed: u64,
    /// Random steps beside the model: writes, reads, discards, ageing, recompression, compaction,
    /// write-back, a store that is opened again.
    pub steps: u64,
    /// Processes that are killed.
    pub kills: u32,
    /// How long the first one lives; each next one a little longer.
    pub life: Duration,
    /// Whether pages of equal content share slots.
    pub share: bool,
    /// How long to go on with one store afterwards, on three threads; not at all when it is zero.
    pub soak: Duration,
    /// Starts a process that calls [`job`].
    pub job: Job,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Steps that were done beside the model.
    pub steps: u64,
    /// Writes of these that were refused for want of space, as they must be.
    pub refused: u64,
    /// Processes that were killed.
    pub kills: u32,
    /// Writes that processes had reported as done before they were killed.
    pub acknowledged: u64,
    /// Pages that were in the file, and not in memory, after a kill at most.
    pub written_back: u64,
    /// Locks of dead threads that were found and opened.
    pub unlocked: u64,
    /// What the long run measured.
    pub soak: Soak,
    /// What is wrong; nothing when every rule holds.
    pub broken: Vec<String>,
}

impl Outcome {
    /// Whether every rule holds.
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
    /// A process could not be started, or said something else than it should.
    #[error("a process of the check: {0}")]
    Job(String),
    /// A thread panicked.
    #[error("a thread of the check panicked")]
    Panicked,
}

/// Checks until `stop` says so or all is done.
///
/// # Errors
/// When there is no memory or no process; what the store does wrong is in the outcome.
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
