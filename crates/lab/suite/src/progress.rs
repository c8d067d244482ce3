//! What a run tells while it goes on; the program turns it into bars and lines.

use dyno_record::Sample;

/// One step of a run, told in the order in which steps happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// A system that the plan names takes no part; the reason says how to mend it.
    Missing {
        /// The name of the peer that is missing.
        system: &'a str,
        /// Why, and how to install it.
        reason: &'a str,
    },
    /// Data is being made now.
    Preparing {
        /// The name of the `[[data]]` section.
        name: &'a str,
        /// The system whose child makes the data.
        system: &'a str,
    },
    /// Data is whole and in its place.
    Prepared {
        /// The name of the `[[data]]` section.
        name: &'a str,
        /// The system whose child made the data, now or in an earlier run.
        system: &'a str,
        /// Whether it was there from an earlier run.
        reused: bool,
        /// Time it took; 0 when reused.
        wall_s: f64,
    },
    /// A system runs a case once to learn its answer.
    Verifying {
        /// The name of the case in the plan.
        case: &'a str,
        /// The system or variant, as the case names it.
        system: &'a str,
    },
    /// All systems of the case agree.
    Verified {
        /// The name of the case in the plan.
        case: &'a str,
        /// The count they agree on.
        count: u64,
        /// How many systems answered; those that failed take no further part.
        systems: usize,
    },
    /// The case, or one system of it, will not be timed.
    CaseFailed {
        /// The name of the case in the plan.
        case: &'a str,
        /// Why nothing more of it is timed, with the words of the child.
        reason: &'a str,
    },
    /// A timed invocation is about to be started.
    Sampling {
        /// The name of the case in the plan.
        case: &'a str,
        /// The system with its arm, such as `dyno (control)` or `tcp (beside the load)`.
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
        /// The sample as it is in the record.
        sample: &'a Sample,
        /// The metric that ranks the case, for the line shown.
        metric: &'a str,
        /// The unit of that metric.
        unit: &'a str,
    },
    /// A system runs a case once more, to see where its processor time goes.
    Profiling {
        /// The name of the case in the plan.
        case: &'a str,
        /// The system or variant, as the case names it.
        system: &'a str,
    },
    /// The whole run's time budget is spent; no further block is started.
    BudgetSpent {
        /// Seconds that the run was given, without the making of data.
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
