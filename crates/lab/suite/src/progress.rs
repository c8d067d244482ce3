//! What a run tells while it goes on; the program turns it into bars and lines.

use dyno_record::Sample;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// A system that the plan names takes no part; the reason says how to mend it.
    Missing {
        /// The peer.
        system: &'a str,
        /// Why, and how to install it.
        reason: &'a str,
    },
    /// Data is being made now.
    Preparing {
        /// The section's name.
        name: &'a str,
        /// Who makes it.
        system: &'a str,
    },
    /// Data lies ready.
    Prepared {
        /// The section's name.
        name: &'a str,
        /// Who made it.
        system: &'a str,
        /// Whether it was there from an earlier run.
        reused: bool,
        /// Time it took; 0 when reused.
        wall_s: f64,
    },
    /// A system runs a case once to learn its answer.
    Verifying {
        /// The case.
        case: &'a str,
        /// The system.
        system: &'a str,
    },
    /// All systems of the case agree.
    Verified {
        /// The case.
        case: &'a str,
        /// The count they agree on.
        count: u64,
        /// How many systems answered.
        systems: usize,
    },
    /// The case, or one system of it, will not be timed.
    CaseFailed {
        /// The case.
        case: &'a str,
        /// What happened.
        reason: &'a str,
    },
    /// An invocation begins.
    Sampling {
        /// The case.
        case: &'a str,
        /// The system, or `dyno (control)`.
        system: &'a str,
        /// Invocations done in the whole run.
        done: u32,
        /// Invocations planned in the whole run.
        planned: u32,
        /// Seconds that the rest will take, learned from what ran so far.
        remaining_s: f64,
    },
    /// An invocation ended and is on disk.
    Sampled {
        /// What it gave.
        sample: &'a Sample,
        /// The metric that ranks the case, for the line shown.
        metric: &'a str,
        /// Its unit.
        unit: &'a str,
    },
    /// The whole run's time budget is spent; no further block is started.
    BudgetSpent {
        /// The budget.
        budget_s: f64,
        /// Invocations that will not run.
        left: u32,
    },
    /// The user asked to stop.
    Stopped,
}

/// Told of every [`Event`] as it happens.
pub trait Observer {
    /// Called on the runner's thread; a slow observer delays the run between children only.
    fn event(&mut self, event: &Event<'_>);
}

impl<F: FnMut(&Event<'_>)> Observer for F {
    fn event(&mut self, event: &Event<'_>) {
        self(event);
    }
}
