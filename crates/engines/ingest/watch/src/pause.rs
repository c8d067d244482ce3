//! Waits that grow while something fails, and hear the wish to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often the wish to stop is looked for.
const TICK: Duration = Duration::from_millis(50);

/// Waits, but no longer than until it is asked to stop.
pub(crate) fn wait(so_long: Duration, stop: &AtomicBool) {
    let until = Instant::now() + so_long;
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(TICK));
    }
}

/// The pauses between attempts at something that fails: each is twice the one before.
#[derive(Debug)]
pub(crate) struct Pause {
    first: Duration,
    longest: Duration,
    next: Duration,
    /// When it failed first, and what was said of it.
    failing: Option<(Instant, String)>,
}

impl Pause {
    pub(crate) fn new(first: Duration, longest: Duration) -> Pause {
        Pause {
            first,
            longest,
            next: first,
            failing: None,
        }
    }

    /// Notes a failure: how long it has gone on, and whether it is another than the last.
    pub(crate) fn failed(&mut self, reason: &str) -> (Duration, bool) {
        let (since, news) = match self.failing.take() {
            Some((since, last)) => (since, last != reason),
            None => (Instant::now(), true),
        };
        self.failing = Some((since, reason.to_owned()));
        (since.elapsed(), news)
    }

    /// Waits for the next attempt.
    pub(crate) fn wait(&mut self, stop: &AtomicBool) {
        wait(self.next, stop);
        self.next = (self.next * 2).min(self.longest);
    }

    /// It works again.
    pub(crate) fn over(&mut self) {
        self.failing = None;
        self.next = self.first;
    }
}
