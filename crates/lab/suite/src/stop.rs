//! A wish to stop, set from a signal handler or a test and looked at between and during children.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by the run and by the code that may end it.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Around a flag that a signal handler sets.
    pub fn new(flag: Arc<AtomicBool>) -> Stop {
        Stop(flag)
    }

    /// Asks the run to end: the child in hand is killed, no other is started.
    pub fn ask(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the run was asked to stop.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The flag itself, for code that polls it while waiting.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// The same for code that keeps it.
    pub fn shared(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
