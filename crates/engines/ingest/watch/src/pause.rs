//! Pauses that grow while something fails, and end early when a stop is requested.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_random::backoff;

/// How often a pause checks for a stop request.
const TICK: Duration = Duration::from_millis(50);

/// Waits, but ends early when `stop` is set.
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

/// The pauses between attempts at something that fails.
#[derive(Debug)]
pub(crate) struct Pause {
    first: Duration,
    longest: Duration,
    attempts: u32,
    /// When the failures began, and the last message.
    failing: Option<(Instant, String)>,
}

impl Pause {
    pub(crate) fn new(first: Duration, longest: Duration) -> Pause {
        Pause {
            first,
            longest,
            attempts: 0,
            failing: None,
        }
    }

    /// Records a failure. Returns how long failures have lasted, and whether the message is a new
    /// one.
    pub(crate) fn failed(&mut self, reason: &str) -> (Duration, bool) {
        let (since, news) = match self.failing.take() {
            // The time counts from the first failure, also if the reasons differ since.
            Some((since, last)) => (since, last != reason),
            None => (Instant::now(), true),
        };
        self.failing = Some((since, reason.to_owned()));
        (since.elapsed(), news)
    }

    /// Waits until the next attempt.
    pub(crate) fn wait(&mut self, stop: &AtomicBool) {
        self.attempts += 1;
        wait(backoff(self.first, self.longest, self.attempts), stop);
    }

    /// Resets the pauses after a success.
    pub(crate) fn over(&mut self) {
        self.failing = None;
        self.attempts = 0;
    }
}
