//! Whether an engine runs, and why it does not.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// The state that every thread of an engine looks at to know whether to go on. Helper threads that
/// connect to other processes hold nothing else of the engine.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    stopping: AtomicBool,
    failure: Mutex<Option<String>>,
    last_note: Mutex<Option<String>>,
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

    /// Records a problem that an operator should know of and that the engine survives. Only the
    /// newest one is kept.
    pub fn note(&self, what: String) {
        *self.last_note.lock() = Some(what);
    }

    pub fn last_note(&self) -> Option<String> {
        self.last_note.lock().clone()
    }
}
