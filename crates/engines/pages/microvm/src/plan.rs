//! What is done for a machine beyond its faults: pages are brought ahead of them, or their order is
//! recorded.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::{error, info, warn};

use crate::snapshot::Snapshot;
use crate::working_set::WorkingSet;

/// The working set of the snapshot, as far as it is known.
#[derive(Debug)]
pub struct Plans {
    /// `None` if pages are neither prefetched nor recorded.
    path: Option<PathBuf>,
    record: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// The next restore is recorded.
    Unknown,
    /// A restore is being recorded; others go without.
    Recording,
    Known(Arc<WorkingSet>),
}

/// What is done for one machine.
#[derive(Debug)]
pub enum Plan {
    /// Only its faults are served.
    Faults,
    /// These pages are brought ahead.
    Prefetch(Arc<WorkingSet>),
    /// The order of first touches is recorded.
    Record(Recorder),
}

/// Collects the order of first touches.
#[derive(Debug)]
pub struct Recorder {
    pages: Vec<u32>,
    until: Instant,
}

impl Recorder {
    /// A page was touched that came from the snapshot; it is touched once.
    pub fn touched(&mut self, page: u64) {
        // Snapshots with more pages than 32 bits count are refused.
        self.pages.push(page as u32);
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

impl Plans {
    /// Reads the file at `path`, if there is one. What cannot be used is said, and recorded anew.
    pub fn new(path: Option<PathBuf>, record: Duration, snapshot: &Snapshot) -> Self {
        let mut state = State::Unknown;
        if let Some(path) = &path {
            let shown = path.display();
            match WorkingSet::read(path, snapshot) {
                Ok(None) => {}
                Ok(Some(set)) => {
                    info!("{shown}: {} pages are brought ahead", set.pages().len());
                    state = State::Known(Arc::new(set));
                }
                Err(why) => warn!("{shown} is not used, and is recorded anew: {why}"),
            }
        }
        Self {
            path,
            record,
            state: Mutex::new(state),
        }
    }

    /// How many pages are brought ahead; `None` if that is not known or not wanted.
    pub fn known(&self) -> Option<usize> {
        match &*self.state.lock() {
            State::Known(set) => Some(set.pages().len()),
            _ => None,
        }
    }

    /// The plan of a machine that begins now.
    pub fn begin(&self) -> Plan {
        if self.path.is_none() {
            return Plan::Faults;
        }
        let mut state = self.state.lock();
        match &*state {
            State::Known(set) => Plan::Prefetch(Arc::clone(set)),
            State::Recording => Plan::Faults,
            State::Unknown => {
                *state = State::Recording;
                Plan::Record(Recorder {
                    pages: Vec::new(),
                    until: Instant::now() + self.record,
                })
            }
        }
    }

    /// Keeps what was recorded, for the restores that begin from now on.
    pub fn finish(&self, recorder: Recorder, snapshot: &Snapshot) {
        let Some(path) = &self.path else {
            return;
        };
        if recorder.pages.is_empty() {
            return self.give_up();
        }
        let set = WorkingSet::new(recorder.pages);
        let shown = path.display();
        match set.write(path, snapshot) {
            Ok(()) => info!("{shown}: {} pages are brought ahead", set.pages().len()),
            // It is known all the same, until this process ends.
            Err(error) => error!("the working set is not kept: {error}"),
        }
        *self.state.lock() = State::Known(Arc::new(set));
    }

    /// A recording came to nothing; the next restore is recorded.
    pub fn give_up(&self) {
        *self.state.lock() = State::Unknown;
    }
}
