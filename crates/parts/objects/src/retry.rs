//! How often to try again, and how long to wait in between.

use std::time::Duration;

use dyno_random::backoff;

/// Limits on attempts and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, at least one.
    pub attempts: u32,
    /// The first wait; each later one is twice as long.
    pub first_wait: Duration,
    /// No wait is longer.
    pub longest_wait: Duration,
    /// An attempt that takes longer has failed.
    pub attempt_timeout: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(120),
        }
    }
}

impl Retry {
    /// The wait after the given failed attempt, counted from 1.
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        backoff(self.first_wait, self.longest_wait, attempt)
    }
}
