//! Whether an engine runs, and why it does not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::warn;

/// A problem that lasts is logged again after this time.
const LOGGED_AGAIN: Duration = Duration::from_secs(60);

/// The state that every thread of an engine looks at to know whether to go on. Helper threads that
/// connect to other processes hold nothing else of the engine.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    stopping: AtomicBool,
    failure: Mutex<Option<String>>,
    last_note: Mutex<Option<String>>,
    /// When each problem of the last minute was logged.
    logged: Mutex<HashMap<String, Instant>>,
}

impl Lifecycle {
    /// Asks all threads to end. They notice within one pass, or when their waker is called.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Records why a thread cannot go on, and stops the others. The first reason is kept, because
    /// the later ones are usually its consequences.
    pub fn fail(&self, why: String) {
        self.failure.lock().get_or_insert(why);
        self.stop();
    }

    pub fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Records and logs a problem that an operator should know of and that the engine survives.
    /// Only the newest one is kept.
    pub fn note(&self, what: String) {
        if self.is_to_be_logged(&what, Instant::now()) {
            warn!("{what}");
        }
        *self.last_note.lock() = Some(what);
    }

    /// Whether the problem was not logged within [`LOGGED_AGAIN`]. Threads that connect try again
    /// several times a second, and would fill the log with the same lines. A comparison with the
    /// last note would not prevent it, because two such threads alternate.
    fn is_to_be_logged(&self, what: &str, now: Instant) -> bool {
        let mut logged = self.logged.lock();
        logged.retain(|_, at| now.duration_since(*at) < LOGGED_AGAIN);
        let is_new = !logged.contains_key(what);
        if is_new {
            logged.insert(what.to_owned(), now);
        }
        is_new
    }

    pub fn last_note(&self) -> Option<String> {
        self.last_note.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_that_lasts_is_logged_once_a_minute() {
        let (lifecycle, start) = (Lifecycle::default(), Instant::now());
        assert!(lifecycle.is_to_be_logged("a store is away", start));
        assert!(lifecycle.is_to_be_logged("another is away", start));
        let soon = start + Duration::from_secs(1);
        assert!(!lifecycle.is_to_be_logged("a store is away", soon));
        assert!(lifecycle.is_to_be_logged("a store is away", start + LOGGED_AGAIN));
    }
}
