//! Where the events of all clients come together.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::history::{Event, History, What};

/// A history that many threads add to, and a list of what went wrong besides.
#[derive(Debug)]
pub struct Recorder {
    history: Mutex<History>,
    troubles: Mutex<Vec<String>>,
    acknowledged: AtomicU64,
    delivered: AtomicU64,
}

impl Recorder {
    /// An empty one of at most `events_max` events.
    pub fn new(events_max: usize) -> Self {
        Self {
            history: Mutex::new(History::new(events_max)),
            troubles: Mutex::default(),
            acknowledged: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
        }
    }

    /// Adds an event. If the history is full that is a trouble.
    pub fn keep(&self, event: Event) {
        let counter = match event.what {
            What::Acknowledged { .. } => Some(&self.acknowledged),
            What::Delivered(_) | What::Claimed(_) => Some(&self.delivered),
            _ => None,
        };
        let kept = self.history.lock().push(event);
        match kept {
            Ok(()) => _ = counter.map(|counter| counter.fetch_add(1, Ordering::Relaxed)),
            Err(error) => self.trouble(error.to_string()),
        }
    }

    /// Notes something that should not have happened. The same text is kept once.
    pub fn trouble(&self, text: String) {
        let mut troubles = self.troubles.lock();
        if !troubles.contains(&text) {
            troubles.push(text);
        }
    }

    /// How many messages were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// How many deliveries there were so far.
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Runs `look` on the history, which takes no events meanwhile.
    pub fn with<T>(&self, look: impl FnOnce(&History) -> T) -> T {
        look(&self.history.lock())
    }

    /// What should not have happened.
    pub fn troubles(&self) -> Vec<String> {
        self.troubles.lock().clone()
    }
}
